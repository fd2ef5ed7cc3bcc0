"""What hashing promises: collision probabilities, Lemma 1 corrected, recall, occupied codes.

Angles are in radians. `norm` is the p of the p-stable lines: 2 for Gaussian, 1 for Cauchy.
docs/theory.md states and proves what is computed here.
"""

import itertools
import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lser.checks import check_count

Norm = Literal[1, 2]
MOST_BITS = 1_000  # beyond, probabilities are nothing but rounding

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)


class Bounds(NamedTuple):
    """A lower bound on the collision probability at c + e, an upper bound on that at c - e."""

    lower: float
    upper: float


class Plan(NamedTuple):
    """Theorem 1's tables for finding near neighbours among n points."""

    rho: float
    bits: int  # hash functions per table
    tables: int
    recall: float  # of one near neighbour, at least 1 - 1/e
    far_per_table: float  # expected far points in the query's bucket, at most 1


class Row(NamedTuple):
    """One line of `expectations`."""

    quantity: str
    value: float
    meaning: str


def _positive(name: str, value: float) -> float:
    if not 0 < value < math.inf:
        raise ValueError(f"{name} must be positive and finite, got {value}")
    return float(value)


def _count(name: str, value: int) -> int:
    if value < 1 or value != int(value):
        raise ValueError(f"{name} must be a whole number of at least 1, got {value}")
    return int(value)


def _probability(name: str, value: float) -> float:
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must be in [0, 1], got {value}")
    return float(value)


def angle(u: ArrayLike, v: ArrayLike) -> float:
    """The angle between two vectors; what Eq. 3's set-cosine stands for."""
    a, b = np.asarray(u, np.float64), np.asarray(v, np.float64)
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    if lengths == 0.0:
        raise ValueError("the angle of a zero vector is not defined")
    return math.acos(min(1.0, max(-1.0, float(a @ b) / lengths)))


def simhash_collision(angle: float, bits: int = 1) -> float:
    """Probability that two vectors at `angle` share a SimHash code: (1 - θ/π)^bits."""
    if not 0 <= angle <= math.pi:
        raise ValueError(f"angle must be in [0, π], got {angle}")
    return float((1.0 - angle / math.pi) ** _count("bits", bits))


def stable_density(t: float, norm: Norm = 2) -> float:
    """Density at t >= 0 of |X|, X standard Gaussian (norm 2) or Cauchy (norm 1)."""
    if norm not in (1, 2):
        raise ValueError(f"norm must be 1 or 2, got {norm}")
    if norm == 2:
        return math.sqrt(2.0 / math.pi) * math.exp(-t * t / 2.0)
    return 2.0 / (math.pi * (1.0 + t * t))


def e2lsh_collision(distance: float, width: float, *, norm: Norm = 2, functions: int = 1) -> float:
    """Probability that two vectors at `distance` fall into the same cell(s), in closed form.

    Datar et al. 2004, with r = width/distance. Gaussian: 1 - 2Φ(-r) - 2/(√(2π) r)(1 - exp(-r²/2));
    Cauchy: (2/π) arctan r - ln(1 + r²)/(π r).
    """
    r = _positive("width", width) / _positive("distance", distance)
    stable_density(0.0, norm)
    if norm == 2:
        p = math.erf(r / math.sqrt(2)) + math.sqrt(2 / math.pi) / r * math.expm1(-r * r / 2)
    else:
        p = (2.0 * math.atan(r) - math.log1p(r * r) / r) / math.pi
    return float(min(1.0, max(0.0, p)) ** _count("functions", functions))


def e2lsh_collision_integral(distance: float, width: float, *, norm: Norm = 2) -> float:
    """Eq. 1 itself, ∫_0^w (1/c) f(t/c)(1 - t/w) dt, by Gauss-Legendre on doubling panels."""
    r = _positive("width", width) / _positive("distance", distance)
    edges = [0.0, min(r, 0.5)]
    while edges[-1] < r:
        edges.append(min(r, 2.0 * edges[-1]))
    total = 0.0
    for low, high in itertools.pairwise(edges):
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            q = low + (high - low) * (node + 1.0) / 2.0
            total += weight * (high - low) / 2.0 * stable_density(q, norm) * (1.0 - q / r)
    return float(total)


def lemma_1(
    distance: float,
    width: float,
    error: float,
    *,
    norm: Norm = 2,
    form: Literal["corrected", "printed", "sharp"] = "corrected",
) -> Bounds:
    """Lemma 1: how far an error e in the distance c can move the collision probability P.

    "corrected" repairs the paper's derivation: P(c-e) <= P + min(e/(c-e), e·w·F/(2(c-e)²)) and
    P(c+e) >= P - min(2e/(c+e), e·w·F/(2c(c+e))), F = sup f. "printed" is what the paper has and is
    false. "sharp" is tighter than "corrected": both gaps are at most
    min(1 - near/far, F·w·(far - near)/(2·near·far)).
    """
    c, w, e = _positive("distance", distance), _positive("width", width), _positive("error", error)
    if e >= c:
        raise ValueError(f"error must be below the distance {distance}, got {error}")
    peak, p = stable_density(0.0, norm), e2lsh_collision(distance, width, norm=norm)
    if form == "corrected":
        lower = p - min(2 * e / (c + e), e * w * peak / (2 * c * (c + e)))
        upper = p + min(e / (c - e), e * w * peak / (2 * (c - e) ** 2))
    elif form == "printed":
        lower = p - min(2 * e / (c + e), e**2 * w * peak / (2 * (c + e) ** 2))
        upper = p + min(e / (c - e), w**2 * peak / (2 * (c - e) ** 2))
    elif form == "sharp":
        lower = p - min(e / (c + e), e * w * peak / (2 * c * (c + e)))
        upper = p + min(e / c, e * w * peak / (2 * c * (c - e)))
    else:
        raise ValueError(f"form must be corrected, printed or sharp, got {form!r}")
    return Bounds(lower, upper)


def recall(collision: float, bits: int, tables: int = 1) -> float:
    """Probability that a point shares the query's bucket in some table: 1 - (1 - p^bits)^tables.

    `collision` is one hash function's; LSER has one table, so its recall is p^bits.
    """
    same = _probability("collision", collision) ** _count("bits", bits)
    if same == 1.0:
        return 1.0
    return -math.expm1(_count("tables", tables) * math.log1p(-same))


def tables_needed(collision: float, bits: int, wanted: float) -> int:
    """The fewest tables with which `recall` reaches `wanted`."""
    if not 0 < wanted < 1:
        raise ValueError(f"wanted must be in (0, 1), got {wanted}")
    same = _probability("collision", collision) ** _count("bits", bits)
    if same == 0.0:
        raise ValueError(f"no number of tables helps at collision {collision} with {bits} bits")
    return 1 if same == 1.0 else math.ceil(math.log1p(-wanted) / math.log1p(-same) - 1e-12)


def theorem_1(points: int, near: float, far: float) -> Plan:
    """Theorem 1 as it should read, for a family with collision probabilities `near` > `far`.

    With k = ⌈ln n / ln(1/p2)⌉ functions per table and L = ⌈p1^-k⌉ tables, a point that collides
    with probability p1 is found with probability at least 1 - 1/e, and of the points that collide
    with at most p2 each table shows at most one on average.
    """
    n = _count("points", points)
    if not 0 < far < near < 1:
        raise ValueError(f"near and far must satisfy 0 < far < near < 1, got {near} and {far}")
    bits = max(1, math.ceil(math.log(n) / math.log(1.0 / far) - 1e-12))
    tables = math.ceil(near**-bits - 1e-12)
    rho = math.log(near) / math.log(far)
    return Plan(rho, bits, tables, recall(near, bits, tables), n * far**bits)


def printed_success(near: float, bits: int) -> float:
    """The paper's bound on success, 1 - e^-1/(1 - p1^k): at most .632, and it can be negative."""
    same = _probability("near", near) ** _count("bits", bits)
    return 1.0 - math.exp(-1.0) / (1.0 - same) if same < 1.0 else -math.inf


def reachable_codes(bits: int, dim: int) -> int:
    """Cells that `bits` hyperplanes through the origin cut R^dim into (Cover 1965).

    2·Σ_{i<dim} C(bits - 1, i), which is 2^bits as long as bits <= dim.
    """
    _count("bits", bits)
    return 2 * sum(math.comb(bits - 1, i) for i in range(min(_count("dim", dim), bits)))


def random_collision(bits: int, dim: int) -> float:
    """Probability that two uniformly random directions in R^dim share a SimHash code."""
    if _count("dim", dim) == 1:
        return 0.5
    reach = min(math.pi / 2, 12.0 / math.sqrt(dim))  # the angle concentrates at a right angle
    theta = math.pi / 2 + reach * np.concatenate([(_NODES - 1) / 2, (_NODES + 1) / 2])
    weight = np.tile(_WEIGHTS, 2) * np.exp((dim - 2) * np.log(np.sin(theta)))
    values = (1.0 - theta / math.pi) ** _count("bits", bits)
    return float((weight * values).sum() / weight.sum())


class Occupancy(NamedTuple):
    """What to expect of a memory of n uniformly random directions."""

    occupied: float  # codes with at least one transition
    unseen: float  # probability that the next observation's code has none
    bucket: float  # transitions in the bucket of a random query


def occupancy(stored: int, bits: int, dim: int) -> Occupancy:
    """Expected occupied codes, unseen queries and bucket size for SimHash.

    The cells are not alike. Their sizes are modelled as Dirichlet with the two facts that are
    known, the number of cells (`reachable_codes`) and the sum of their squares
    (`random_collision`); simulations agree to a few per cent, to a tenth where bits > dim. Real
    observations crowd into fewer codes than uniform directions do.
    """
    n, cells = _count("stored", stored), reachable_codes(bits, dim)
    squares = random_collision(bits, dim)
    excess = cells * squares - 1.0
    empty = 0.0  # log of the probability that a given cell is empty after n draws
    mass = (1.0 - squares) * cells / excess if excess > 1e-9 else math.inf  # of the Dirichlet
    if math.isinf(mass):
        empty = n * math.log1p(-1.0 / cells)
    else:
        for start in range(0, n, 1_000_000):
            i = np.arange(start, min(n, start + 1_000_000))
            empty += float(np.log1p(-(mass / cells) / (mass + i)).sum())
    unseen = math.exp(empty) * (1.0 if math.isinf(mass) else mass / (mass + n))
    return Occupancy(-math.expm1(empty) * cells, unseen, n * squares)


def expectations(
    bits: int,
    *,
    angle: float | None = None,
    distance: float | None = None,
    width: float = 4.0,
    norm: Norm = 2,
    tables: int = 1,
    stored: int | None = None,
    dim: int | None = None,
) -> list[Row]:
    """What to expect of `bits` hash functions, as rows for a table.

    Give `angle` (radians) for SimHash or `distance` (with `width` and `norm`) for E2LSH; `stored`
    transitions in `dim` dimensions add the occupancy of SimHash's codes.
    """
    if (angle is None) == (distance is None):
        raise ValueError(f"give angle or distance, got angle={angle} and distance={distance}")
    check_count("bits", bits, high=MOST_BITS)
    check_count("tables", tables)
    if angle is not None:
        one = simhash_collision(angle)
        rows = [Row("angle", math.degrees(angle), "degrees between the two observations")]
    else:
        one = e2lsh_collision(float(distance or 0.0), width, norm=norm)
        rows = [Row("distance", float(distance or 0.0), f"L{norm} distance, cells {width:g} wide")]
    rows += [
        Row("one function", one, "collision probability of one bit or cell"),
        Row("one table", recall(one, bits), f"of the whole code, {bits} functions: LSER's recall"),
    ]
    if tables > 1:
        rows.append(Row("some table", recall(one, bits, tables), f"recall of {tables} tables"))
    if 1e-300 < one**bits < 1:
        needed = tables_needed(one, bits, 0.9)
        rows.append(Row("tables for .9", needed, "tables that would find it 9 times in 10"))
    if angle is not None and stored is not None and dim is not None:
        found = occupancy(stored, bits, dim)
        rows += [
            Row("reachable codes", reachable_codes(bits, dim), f"of {bits} planes in {dim}-d"),
            Row("occupied codes", found.occupied, f"after {stored} uniformly random directions"),
            Row("unseen queries", found.unseen, "probability that a new one's bucket is empty"),
            Row("bucket size", found.bucket, "transitions that share a random query's code"),
        ]
    return rows
