"""What policies are known to score on each platform: the ends of the scale of every result.

0 is random actions, 1 the best policy known. The numbers are data, with where they come from; a
platform at other settings than these has no scale.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lser.experiments.studies.shops import SHOPS, Shop
from lser.experiments.studies.worlds import WORLDS

REWARD = "reward"  # per step: what the agents are trained on, whatever the platform's metric is


@dataclass(frozen=True)
class Policy:
    """A policy and what it scores."""

    name: str
    score: float


@dataclass(frozen=True)
class ScoreScale:
    """The scores between which a metric moves."""

    random: Policy
    best: Policy
    constant: Policy | None = None
    """The best that shows everybody the same."""
    source: str = ""
    others: tuple[Policy, ...] = ()
    """What the simplest learners score: the linear bandit and what is popular."""

    @property
    def policies(self) -> tuple[Policy, ...]:
        """All of them, the best first."""
        between = sorted(
            (*self.others, *([self.constant] if self.constant else [])), key=lambda one: -one.score
        )
        return (self.best, *between, self.random)

    def share(self, score: float) -> float:
        """Where a score lies between random (0) and the best known (1)."""
        return (score - self.random.score) / (self.best.score - self.random.score)

    def score(self, share: float) -> float:
        """The score at a share of the way."""
        return self.random.score + share * (self.best.score - self.random.score)


@dataclass(frozen=True)
class Platform:
    """A simulator at known settings, with a scale for its metric and one for the reward."""

    simulator: str
    settings: Mapping[str, Any]
    scales: Mapping[str, ScoreScale]

    def fits(self, simulator: Mapping[str, Any]) -> bool:
        """Whether a record's simulator has these settings; one it does not hold is the default."""
        return simulator.get("name") == self.simulator and all(
            _equal(simulator.get(key, value), value) for key, value in self.settings.items()
        )


def scale_of(experiment: Mapping[str, Any], metric: str) -> ScoreScale | None:
    """The scale of a metric (or of `REWARD`) where this experiment ran, if it is known."""
    simulator = experiment.get("simulator")
    if not isinstance(simulator, Mapping):
        return None
    known = (platform for platform in PLATFORMS if platform.fits(simulator))
    return next((p.scales[metric] for p in known if metric in p.scales), None)


def _equal(value: Any, other: Any) -> bool:
    if isinstance(value, int | float) and isinstance(other, int | float):
        return math.isclose(value, other)
    return bool(value == other)


def _times(scale: ScoreScale, factor: float) -> ScoreScale:
    """The scale of the reward where it is a multiple of the metric: clicks, not their share."""

    def of(policy: Policy) -> Policy:
        return Policy(policy.name, factor * policy.score)

    constant, others = of(scale.constant) if scale.constant else None, map(of, scale.others)
    return ScoreScale(of(scale.random), of(scale.best), constant, scale.source, tuple(others))


def mean_scale(scales: Sequence[ScoreScale]) -> ScoreScale:
    """The scale of scores that are averaged over several worlds."""
    first = scales[0]

    def of(policies: Sequence[Policy]) -> Policy:
        return Policy(policies[0].name, sum(p.score for p in policies) / len(policies))

    constants = [scale.constant for scale in scales if scale.constant is not None]
    others = zip(*(scale.others for scale in scales), strict=True)
    return ScoreScale(
        of([scale.random for scale in scales]),
        of([scale.best for scale in scales]),
        of(constants) if len(constants) == len(scales) else None,
        first.source,
        tuple(of(group) for group in others),
    )


_TAOBAO = ScoreScale(
    Policy("random actions", 0.0185),
    Policy("actor trained through the click network", 0.9997),
    Policy("best constant action", 0.992),
    "docs/simulators/virtual_taobao.md",
    (Policy("linear bandit", 0.899), Policy("popular", 0.467), Policy("neural bandit", 0.945)),
)
_SATISFACTION = ScoreScale(
    Policy("random documents", 15.81),
    Policy("optimum that sees the exposure", 18.94),
    Policy("most clickbait", 18.94),  # the optimum itself; 18.97 in 8,000 simulated sessions
    "docs/simulators/long_term_satisfaction.md, dynamic programming",
    (Policy("linear bandit", 18.9), Policy("popular", 18.9)),
)
_INFORMATIVE = ScoreScale(
    Policy("random documents", 15.87),
    Policy("optimum that sees the exposure", 17.20),
    Policy("least clickbait", 16.67),
    "docs/simulators/long_term_satisfaction.md, dynamic programming",
    (Policy("most clickbait, the best page now", 13.88),),
)
_RECOGYM = ScoreScale(
    Policy("random products", 0.0113),
    Policy("oracle that knows the user", 0.0184),
    Policy("most popular product", 0.0150),
    "docs/simulators/recogym.md",
    (Policy("linear bandit", 0.0153), Policy("popular", 0.0118)),
)
_QUALITY = ScoreScale(
    Policy("random slates", -0.60),
    Policy("ratio 1.5, the best return known", 2.24),
    source="docs/simulators/interest_evolution.md",
    others=(Policy("linear bandit", -0.4), Policy("popular", -0.61)),
)
_PAID_BY_QUALITY = replace(  # the bandits of F, after 500 sessions
    _QUALITY, others=(Policy("linear bandit, Thompson", 1.92), Policy("linear bandit", 1.90))
)
_PAID = ScoreScale(
    Policy("random slates", -0.34),
    Policy("ratio 1.5, the best return known", 1.17),
    source="simulated over 2,000 sessions",
    others=(Policy("linear bandit, Thompson", 1.10), Policy("linear bandit", 1.08)),
)
_WATCHED = ScoreScale(  # in continuing traffic, where a session's end costs nothing
    Policy("random actions", 2.21),
    Policy("highest interest", 2.88),
    source="simulated over 4,000 sessions",
    others=(Policy("linear bandit", 2.56), Policy("popular", 1.97)),
)

# Bazaar by (sparsity, state dependence) on the older map: the best constant, and the oracle that
# sees the hidden interest; each simulated over 4,096 sessions.
_BAZAAR_MAP = {
    (0.01, 0.0): (0.286, 0.286),
    (0.01, 0.5): (0.100, 0.302),
    (0.01, 0.75): (0.035, 0.299),
    (0.01, 1.0): (0.011, 0.299),
    (0.05, 0.0): (0.653, 0.653),
    (0.05, 0.5): (0.378, 0.656),
    (0.05, 0.75): (0.162, 0.652),
    (0.05, 1.0): (0.075, 0.649),
}
_BAZAAR_DEFAULTS = {
    "items": 1000, "features": 8, "topics": 20, "slate": 10, "individuality": 0.1, "drift": 0.05,
    "patience": 3.0, "pages": 8.0, "world_seed": 0, "actions": "continuous", "generosity": 0.0,
}  # fmt: skip


def _bazaar(dials: Mapping[str, float], known: Sequence[float], informed: float = 0.0) -> Platform:
    random, constant, oracle = known
    scale = ScoreScale(
        Policy("random actions", random),
        Policy("oracle that sees the hidden interest", oracle),
        Policy("shared taste for everybody", constant),
        "docs/simulators/bazaar.md",
        (Policy("policy that knows demographics", informed),) if informed else (),
    )
    return Platform(
        "bazaar", {**_BAZAAR_DEFAULTS, **dials}, {"ctr": scale, REWARD: _times(scale, 10)}
    )


def _bazaars() -> tuple[Platform, ...]:
    older = (
        _bazaar({"sparsity": sparsity, "state_dependence": dependence}, (sparsity, *known))
        for (sparsity, dependence), known in _BAZAAR_MAP.items()
    )
    dials = ("sparsity", "state_dependence", "patience", "drift", "world_seed")
    worlds = (
        _bazaar(
            {name: getattr(world, name) for name in dials},
            (world.random, world.constant, world.oracle),
            world.informed,
        )
        for world in WORLDS
    )
    return (*older, *worlds)


def _offers(shop: Shop) -> Platform:
    """A world of RecoGym where agents learn: rewards are 50 times the clicks expected."""
    scale = ScoreScale(
        Policy("random products", shop.random),
        Policy("oracle that knows the user", shop.oracle),
        Policy("best product for everybody", shop.constant),
        "simulated over 20,000 users",
        (Policy("what the user viewed most", shop.own),),
    )
    settings = {**_SHOP, "random_seed": shop.world, "reward_scale": 50.0}
    return Platform("recogym", settings, {"ctr": scale, REWARD: _times(scale, 50)})


_INTERESTS = {"num_candidates": 20, "slate_size": 3, "actions": "continuous", "num_clusters": 20}
_SHOP = {"random_seed": 42, "num_products": 10, "number_of_flips": 0, "version": 1}
_DOCUMENTS = {"num_candidates": 20, "slate_size": 1, "time_budget": 60}
PLATFORMS: tuple[Platform, ...] = (
    Platform(
        "virtual-taobao",
        {"generated": False, "items_per_page": 10},
        {"ctr": _TAOBAO, REWARD: _times(_TAOBAO, 10)},
    ),
    Platform(
        "long-term-satisfaction",
        {"sensitivity": 0.01, **_DOCUMENTS},
        {"reward_per_step": _SATISFACTION, REWARD: _SATISFACTION},
    ),
    Platform(
        "long-term-satisfaction",
        {"sensitivity": 0.1, **_DOCUMENTS},
        {"reward_per_step": _INFORMATIVE, REWARD: _INFORMATIVE},
    ),
    Platform(
        "interest-evolution",
        {**_INTERESTS, "reward": "watch time"},
        {"quality": _QUALITY, REWARD: _WATCHED},
    ),
    Platform(
        "interest-evolution",
        {**_INTERESTS, "reward": "quality"},
        {"quality": _PAID_BY_QUALITY, REWARD: _PAID},
    ),
    Platform("recogym", {**_SHOP, "reward_scale": 1.0}, {"ctr": _RECOGYM, REWARD: _RECOGYM}),
    *map(_offers, SHOPS),
    *_bazaars(),
)
