"""Off-policy estimates: what another policy's click rate would have been, from the log.

The weight of place j is the product over the places up to j of the target's chance over the
logged one: a click is taken to depend on its item and on what stands above it (McInerney et al.,
2020). IPS is unbiased under that assumption, SNIPS divides by the sum of weights, and the doubly
robust estimate corrects a linear model of clicks, fitted on other visitors. Few effective samples
make all three meaningless, so they are refused.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from lser.online.arms import unit
from lser.online.bandit import LARGEST, Bandit
from lser.online.items import Items, unpacked
from lser.online.joins import Decision, Joins
from lser.online.log import Reader
from lser.online.nearest import Nearest
from lser.online.pages import logits
from lser.online.policies import Policy
from lser.online.serving import candidates, chances
from lser.online.settings import Settings
from lser.online.store import Store
from lser.online.tower import with_one
from lser.types import Float32, Int64

FLOOR = 100.0  # effective samples below which nothing is said
Float64 = NDArray[np.float64]


class Estimate(NamedTuple):
    """A click rate with its standard error over visitors."""

    value: float
    error: float


@dataclass(frozen=True)
class Evaluation:
    """What the log says about a policy."""

    pages: int
    effective: float  # sample size
    logged: float  # click rate of the pages as they were shown
    ips: Estimate | None  # None: refused
    snips: Estimate | None
    doubly_robust: Estimate | None


class Sample(NamedTuple):
    """One closed page as the estimators see it."""

    visitor: str
    observation: Float32
    rows: Int64
    clicked: Float64
    weights: Float64  # (k,) cumulated
    before: Float64  # (k,) the weight of the places above
    ahead: Float64  # (k, d) mean vector of the target's next item given those above


def closed_pages(reader: Reader, most: int) -> Iterator[tuple[Decision, Items, Settings]]:
    """The newest closed pages of a log, oldest first, each with the catalogue of its time."""
    settings = Settings.from_json(orjson.loads(next(reader.of_kind("settings")).body))
    items, joins = Items(settings.dim), Joins(settings.window)
    total = sum(1 for _ in reader.of_kind("decision"))
    seen, cursor = 0, 0
    while events := reader.read(cursor):
        for event in events:
            for decision in joins.fold(event):
                seen += 1
                if seen > total - most:
                    yield decision, items, settings
            if event.kind == "items":
                items.apply(orjson.loads(event.body))
            elif event.kind == "settings":
                settings = Settings.from_json(orjson.loads(event.body))
        cursor = events[-1].seq


def evaluate(
    reader: Reader, policies: dict[str, Policy], *, most: int = 20_000, floor: float = FLOOR
) -> dict[str, Evaluation]:
    """Estimate the click rates of `policies` from the newest pages of a log."""
    samples: dict[str, list[Sample]] = {name: [] for name in policies}
    vectors: Any = None
    nearest: Nearest | None = None
    for decision, items, settings in closed_pages(reader, most):
        if nearest is None:
            nearest = Nearest(items)
        rows = np.array([items.row.get(item, -1) for item in decision.items], np.int64)
        if not len(rows) or (rows < 0).any():
            continue
        for name, policy in policies.items():
            samples[name].append(_sample(decision, rows, policy, items, nearest, settings))
        vectors = items.vectors
    return {name: _estimates(found, vectors, floor) for name, found in samples.items()}


def _sample(
    decision: Decision,
    rows: Int64,
    policy: Policy,
    items: Items,
    nearest: Nearest,
    settings: Settings,
) -> Sample:
    body = decision.body
    limits = body.get("limits", {})
    mask = items.eligible(
        among=limits.get("among"), where=limits.get("where"), exclude=limits.get("exclude", ())
    )
    observation = unpacked(body["observation"])
    target = chances(policy, observation, items, nearest, settings, rows, mask)
    logged = np.array(body["propensities"])
    weights = np.cumprod(target / logged)
    clicked = np.array([item in decision.clicked for item in body["items"]], np.float64)
    before = np.concatenate(([1.0], weights[:-1]))
    ahead = _ahead(policy, observation, items, nearest, settings, rows, mask)
    visitor = decision.user or decision.session
    return Sample(visitor, observation, rows, clicked, weights, before, ahead)


def _ahead(
    policy: Policy,
    observation: Float32,
    items: Items,
    nearest: Nearest,
    settings: Settings,
    rows: Int64,
    mask: Any,
) -> Float64:
    """The mean vector of the target's item at each place, given the logged items above it."""
    live = items.live if mask is None else mask & items.live
    vectors = items.vectors.astype(np.float64)
    k, count = len(rows), max(int(np.count_nonzero(live)), len(rows))
    shown = np.cumsum(vectors[rows], axis=0)
    above = np.concatenate((np.zeros((1, items.dim)), shown[:-1]))
    left = count - np.arange(k)
    uniform = (vectors[live].sum(axis=0) - above) / np.maximum(left, 1)[:, None]
    found = candidates(policy, observation, nearest, max(settings.candidates, k), mask)
    if len(found.rows) < k:
        nothing: Float64 = uniform
        return nothing
    logit = logits(found.scores, settings.temperature)
    place = {int(row): index for index, row in enumerate(found.rows)}
    weight, out = np.exp(logit - logit.max()), np.zeros((k, items.dim))
    share = settings.random_share
    greedy, random = math.log1p(-share) if share < 1 else -math.inf, math.log(max(share, 1e-300))
    for j, row in enumerate(rows):
        belief = 1 / (1 + math.exp(min(random - greedy, 700.0))) if greedy > -math.inf else 0.0
        total = weight.sum()
        ahead = weight @ vectors[found.rows] / total if total > 0 else uniform[j]
        out[j] = belief * ahead + (1 - belief) * uniform[j]
        index = place.get(int(row))
        chance = 0.0 if index is None else weight[index] / total
        greedy = greedy + math.log(chance) if chance > 0 else -math.inf
        random -= math.log(left[j])
        if index is not None:
            weight[index] = 0.0
    return out


def _estimates(samples: list[Sample], vectors: Any, floor: float) -> Evaluation:
    if not samples:
        return Evaluation(0, 0.0, math.nan, None, None, None)
    mean = np.array([sample.weights.mean() for sample in samples])
    effective = float(mean.sum() ** 2 / max((mean**2).sum(), 1e-300))
    logged = float(np.mean([sample.clicked.mean() for sample in samples]))
    if effective < floor:
        return Evaluation(len(samples), effective, logged, None, None, None)
    names = [sample.visitor for sample in samples]
    plain = np.array([(sample.weights * sample.clicked).mean() for sample in samples])
    snips = plain.sum() / mean.sum()
    robust = _doubly_robust(samples, vectors)
    return Evaluation(
        len(samples),
        effective,
        logged,
        Estimate(float(plain.mean()), _error(names, plain - plain.mean(), len(samples))),
        Estimate(float(snips), _error(names, plain - snips * mean, float(mean.sum()))),
        None
        if robust is None
        else Estimate(float(robust.mean()), _error(names, robust - robust.mean(), len(samples))),
    )


def _doubly_robust(samples: list[Sample], vectors: Any) -> Float64 | None:
    """Each page's doubly robust click rate; the model comes from the other half of visitors."""
    width, dim = len(samples[0].observation), samples[0].ahead.shape[1]
    if (width + 1) * dim > LARGEST:
        return None
    half = np.array([unit("fold", sample.visitor) < 0.5 for sample in samples])
    out = np.zeros(len(samples))
    for fold in (True, False):
        model = Bandit(width, dim)
        for place in np.flatnonzero(half != fold):
            sample = samples[place]
            x = vectors[sample.rows]
            model.see(sample.observation, x, sample.clicked.astype(np.float32))
        solved = model.solve().astype(np.float64)
        for place in np.flatnonzero(half == fold):
            sample = samples[place]
            taste = with_one(sample.observation[None])[0].astype(np.float64) @ solved
            shown = vectors[sample.rows].astype(np.float64) @ taste
            ahead = sample.ahead @ taste
            part = sample.before * ahead + sample.weights * (sample.clicked - shown)
            out[place] = part.mean()
    return out


def _error(names: list[str], residual: Float64, count: float) -> float:
    """Standard error of a mean or ratio whose independent units are visitors."""
    sums: dict[str, float] = {}
    for name, value in zip(names, residual.tolist(), strict=True):
        sums[name] = sums.get(name, 0.0) + value
    return math.sqrt(sum(value**2 for value in sums.values())) / count


def current_policies(store: Store, reader: Reader, names: list[str]) -> dict[str, Policy]:
    """Policies named ARM-VERSION, or the newest sound one of every arm."""
    from lser.online.policies import load_policy

    newest: dict[str, int] = {}
    for event in reader.of_kind("policy"):
        body = orjson.loads(event.body)
        if body["sound"]:
            newest[body["arm"]] = body["version"]
    wanted = names or [f"{arm}-{version}" for arm, version in newest.items()]
    found = {}
    for name in wanted:
        arm, _, version = name.rpartition("-")
        if not arm or not version.isdigit():
            raise ValueError(f"a policy is ARM-VERSION, got {name!r}")
        try:
            found[name] = load_policy(store.shelf, arm, int(version))
        except OSError:
            raise ValueError(f"{store.name} holds no policy {name}") from None
    return found
