"""The theory on worked numbers, against quadrature, and against the real encoders."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate
from scipy import stats as scipy_stats

from lser import theory
from lser.replay.index.encoders import E2LSH, SimHash

GRID = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
SHARES = (0.01, 0.05, 0.1, 0.25, 0.5)  # of the distance
CASES = [(c, w, c * share) for c, w, share in itertools.product(GRID, GRID, SHARES)]
NORMS: tuple[theory.Norm, theory.Norm] = (1, 2)
positive = st.floats(0.01, 100.0)


def test_simhash_collision_on_worked_numbers() -> None:
    assert theory.simhash_collision(0.0, 10) == 1.0
    assert theory.simhash_collision(math.pi / 2) == pytest.approx(0.5)
    assert theory.simhash_collision(math.pi / 3, 2) == pytest.approx(4 / 9)
    assert theory.simhash_collision(math.pi, 1) == 0.0


def test_angle_is_that_of_the_vectors() -> None:
    assert theory.angle([1, 0], [1, 1]) == pytest.approx(math.pi / 4)
    assert theory.angle([2, 0], [-3, 0]) == pytest.approx(math.pi)
    with pytest.raises(ValueError, match="zero vector"):
        theory.angle([0, 0], [1, 1])


def test_e2lsh_collision_on_worked_numbers() -> None:
    # Gauss, c = 1.1, w = 4: the example of the corrected lemma
    assert theory.e2lsh_collision(1.1, 4.0) == pytest.approx(0.7806, abs=5e-5)
    # Cauchy, r = 1: 2/π·π/4 - ln 2/π
    assert theory.e2lsh_collision(2.0, 2.0, norm=1) == pytest.approx(0.5 - math.log(2) / math.pi)
    one = theory.e2lsh_collision(1.0, 4.0)
    assert theory.e2lsh_collision(1.0, 4.0, functions=3) == pytest.approx(one**3)


@pytest.mark.parametrize("norm", NORMS)
def test_closed_forms_equal_the_integral_and_scipys(norm: theory.Norm) -> None:
    density = scipy_stats.halfcauchy.pdf if norm == 1 else scipy_stats.halfnorm.pdf
    for c, w in itertools.product((0.05, 0.5, 1.0, 3.0, 40.0), (0.1, 1.0, 4.0, 50.0)):
        closed = theory.e2lsh_collision(c, w, norm=norm)
        assert theory.e2lsh_collision_integral(c, w, norm=norm) == pytest.approx(closed, abs=1e-10)
        reference, _ = integrate.quad(
            lambda q, r=w / c: density(q) * (1 - q / r), 0, w / c, limit=500, points=[min(1, w / c)]
        )
        assert closed == pytest.approx(reference, abs=1e-6)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("form", ["corrected", "sharp"])
def test_the_true_bounds_hold_on_the_grid(norm: theory.Norm, form: str) -> None:
    for c, w, e in CASES:
        bounds = theory.lemma_1(c, w, e, norm=norm, form=form)  # type: ignore[arg-type]
        assert theory.e2lsh_collision(c + e, w, norm=norm) >= bounds.lower - 1e-12
        assert theory.e2lsh_collision(c - e, w, norm=norm) <= bounds.upper + 1e-12


@given(positive, positive, st.floats(0.001, 0.999), st.sampled_from(NORMS))
def test_the_sharp_bounds_hold_everywhere_and_are_within_the_corrected(
    c: float, w: float, share: float, norm: theory.Norm
) -> None:
    e = share * c
    sharp = theory.lemma_1(c, w, e, norm=norm, form="sharp")
    corrected = theory.lemma_1(c, w, e, norm=norm)
    assert corrected.lower - 1e-12 <= sharp.lower
    assert sharp.lower <= theory.e2lsh_collision(c + e, w, norm=norm) + 1e-12
    assert theory.e2lsh_collision(c - e, w, norm=norm) <= sharp.upper + 1e-12
    assert sharp.upper <= corrected.upper + 1e-12


def test_the_printed_lower_bound_fails_on_the_example() -> None:
    printed = theory.lemma_1(1.0, 4.0, 0.1, form="printed")
    assert printed.lower == pytest.approx(0.7873, abs=5e-5)
    assert theory.e2lsh_collision(1.1, 4.0) < printed.lower


@pytest.mark.parametrize(("norm", "lower", "upper"), [(2, 170, 34), (1, 179, 34)])
def test_the_printed_bounds_fail_over_the_grid(norm: theory.Norm, lower: int, upper: int) -> None:
    failed = [0, 0]
    for c, w, e in CASES:
        printed = theory.lemma_1(c, w, e, norm=norm, form="printed")
        failed[0] += theory.e2lsh_collision(c + e, w, norm=norm) < printed.lower - 1e-12
        failed[1] += theory.e2lsh_collision(c - e, w, norm=norm) > printed.upper + 1e-12
    assert len(CASES) == 245
    assert failed == [lower, upper]


def test_recall_on_worked_numbers() -> None:
    assert theory.recall(0.9, 20) == pytest.approx(0.12, abs=0.005)
    assert theory.recall(0.95, 20) == pytest.approx(0.36, abs=0.005)
    assert theory.recall(0.5, 1, 3) == pytest.approx(1 - 1 / 8)
    assert theory.recall(1.0, 20, 2) == 1.0
    assert theory.recall(1e-5, 4, 1) == pytest.approx(1e-20)


@given(st.floats(0.3, 0.99), st.integers(1, 20), st.floats(0.05, 0.99))
def test_tables_needed_is_the_smallest_that_suffices(p: float, bits: int, wanted: float) -> None:
    tables = theory.tables_needed(p, bits, wanted)
    assert theory.recall(p, bits, tables) >= wanted - 1e-9
    if tables > 1:
        assert theory.recall(p, bits, tables - 1) < wanted + 1e-9


@given(st.integers(2, 10**7), st.floats(0.5, 0.99), st.floats(0.1, 0.95))
def test_theorem_1_keeps_its_promises(points: int, near: float, share: float) -> None:
    plan = theory.theorem_1(points, near, near * share)
    assert plan.recall >= 1 - math.exp(-1) - 1e-9
    assert plan.far_per_table <= 1 + 1e-9
    assert plan.tables <= points**plan.rho / near + 1 + 1e-6


def test_the_printed_success_is_at_most_632_and_can_be_negative() -> None:
    assert max(theory.printed_success(p, k) for p in (0.1, 0.5, 0.9) for k in (1, 9, 99)) < 0.6322
    assert theory.printed_success(0.9, 4) < 0


def test_cover_counts_cells_on_worked_numbers() -> None:
    assert theory.reachable_codes(3, 2) == 6  # three lines through the origin of a plane
    assert theory.reachable_codes(4, 3) == 14
    assert theory.reachable_codes(10, 91) == 1024
    assert theory.reachable_codes(5, 1) == 2


def test_random_collision_on_worked_numbers() -> None:
    assert theory.random_collision(1, 7) == pytest.approx(0.5)
    assert theory.random_collision(2, 2) == pytest.approx(1 / 3)  # E(1-U)² for a uniform angle
    assert theory.random_collision(10, 10_000) == pytest.approx(2**-10, rel=0.01)


def unit(rng: np.random.Generator, n: int, dim: int) -> np.ndarray:
    x = rng.standard_normal((n, dim))
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


def assert_rate(collides: Callable[[int], float], expected: float, encoders: int) -> None:
    """The mean over freshly drawn encoders is within four of its standard errors."""
    rates = np.array([collides(seed) for seed in range(encoders)])
    error = rates.std() / math.sqrt(encoders)
    assert abs(rates.mean() - expected) < 4 * error, (rates.mean(), expected, error)


@pytest.mark.parametrize(("degrees", "bits"), [(5, 20), (20, 10), (60, 4), (120, 2)])
def test_the_simhash_encoder_collides_as_promised(degrees: int, bits: int) -> None:
    theta = math.radians(degrees)

    def collides(seed: int) -> float:
        rng = np.random.default_rng(seed)
        u, v = unit(rng, 200, 8), unit(rng, 200, 8)
        v -= (u * v).sum(axis=1, keepdims=True) * u
        v /= np.linalg.norm(v, axis=1, keepdims=True)
        w = math.cos(theta) * u + math.sin(theta) * v
        encoder = SimHash(8, bits=bits, seed=seed)
        u32, w32 = (3 * u).astype(np.float32), (0.2 * w).astype(np.float32)
        return float((encoder.encode(u32) == encoder.encode(w32)).mean())

    assert_rate(collides, theory.simhash_collision(theta, bits), encoders=300)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("distance", "functions"), [(0.5, 3), (2.0, 1), (4.0, 2)])
def test_the_e2lsh_encoder_collides_as_promised(
    norm: theory.Norm, distance: float, functions: int
) -> None:
    def collides(seed: int) -> float:
        rng = np.random.default_rng(seed)
        u, step = rng.standard_normal((100, 6)), rng.standard_normal((100, 6))
        step *= distance / np.linalg.norm(step, ord=norm, axis=1, keepdims=True)
        encoder = E2LSH(6, functions=functions, width=4.0, norm=norm, seed=seed)
        cells, others = encoder.cells(u.astype(np.float32)), encoder.cells(u + step)
        return float((cells == others).all(axis=1).mean())

    expected = theory.e2lsh_collision(distance, 4.0, norm=norm, functions=functions)
    assert_rate(collides, expected, encoders=600)


@pytest.mark.parametrize(
    ("stored", "bits", "dim"),
    [(500, 10, 91), (5_000, 10, 91), (5_000, 10, 5), (2_000, 16, 20), (4_000, 20, 3), (300, 6, 2)],
)
def test_the_encoder_occupies_as_many_codes_as_promised(stored: int, bits: int, dim: int) -> None:
    occupied, unseen, together = [], [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((stored + 1_000, dim)).astype(np.float32)
        codes = SimHash(dim, bits=bits, seed=seed).encode(x)
        known, sizes = np.unique(codes[:stored], return_counts=True)
        occupied.append(known.size)
        unseen.append(1 - np.isin(codes[stored:], known).mean())
        together.append((sizes**2).sum() / stored - 1)  # the others in a stored one's bucket
    expected = theory.occupancy(stored, bits, dim)
    close = 0.06 if bits <= dim else 0.11
    assert expected.occupied == pytest.approx(np.mean(occupied), rel=close)
    assert expected.unseen == pytest.approx(np.mean(unseen), rel=0.15, abs=0.01)
    assert expected.bucket == pytest.approx(np.mean(together), rel=0.06)
    assert max(occupied) <= theory.reachable_codes(bits, dim)


def test_occupancy_of_equal_cells_is_the_classic_formula() -> None:
    found = theory.occupancy(3, 1, 5)
    assert found.occupied == pytest.approx(2 * (1 - 0.5**3))
    assert found.unseen == pytest.approx(0.5**3)
    assert theory.occupancy(2_500_000, 10, 91).occupied == pytest.approx(1024, abs=0.1)


def test_expectations_are_plain_rows() -> None:
    rows = {
        row.quantity: row.value
        for row in theory.expectations(10, angle=math.pi / 6, tables=4, stored=1_000, dim=8)
    }
    assert rows["angle"] == pytest.approx(30)
    assert rows["one table"] == pytest.approx(theory.simhash_collision(math.pi / 6, 10))
    assert rows["some table"] == pytest.approx(theory.recall(5 / 6, 10, 4))
    assert rows["occupied codes"] == pytest.approx(theory.occupancy(1_000, 10, 8).occupied)
    flat = {row.quantity: row.value for row in theory.expectations(4, distance=1.0, norm=1)}
    assert flat["one function"] == pytest.approx(theory.e2lsh_collision(1.0, 4.0, norm=1))
    assert "occupied codes" not in flat


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.simhash_collision(4.0), "angle must be in"),
        (lambda: theory.simhash_collision(1.0, 0), "bits must be a whole number"),
        (lambda: theory.e2lsh_collision(0.0, 1.0), "distance must be positive"),
        (lambda: theory.e2lsh_collision(1.0, math.nan), "width must be positive"),
        (lambda: theory.e2lsh_collision(1.0, 1.0, norm=3), "norm must be 1 or 2, got 3"),  # type: ignore[arg-type]
        (lambda: theory.lemma_1(1.0, 1.0, 1.0), "error must be below the distance"),
        (lambda: theory.lemma_1(1.0, 1.0, 0.1, form="x"), "form must be"),  # type: ignore[arg-type]
        (lambda: theory.recall(1.5, 2), r"collision must be in \[0, 1\], got 1.5"),
        (lambda: theory.tables_needed(0.0, 2, 0.5), "no number of tables"),
        (lambda: theory.tables_needed(0.5, 2, 1.0), "wanted must be"),
        (lambda: theory.theorem_1(10, 0.2, 0.5), "0 < far < near < 1"),
        (lambda: theory.expectations(10), "give angle or distance"),
    ],
)
def test_bad_arguments_are_refused_by_name(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
