"""What policies are known to score on each platform: the ends of the scale of every result.

0 is random actions, 1 the best policy known. The numbers are data, with where they come from; a
platform at other settings than these has no scale.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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

    constant = of(scale.constant) if scale.constant else None
    return ScoreScale(of(scale.random), of(scale.best), constant, scale.source)


_TAOBAO = ScoreScale(
    Policy("random actions", 0.0185),
    Policy("actor trained through the click network", 0.9997),
    Policy("best constant action", 0.992),
    "docs/simulators/virtual_taobao.md",
)
_SATISFACTION = ScoreScale(
    Policy("random documents", 15.81),
    Policy("optimum that sees the exposure", 18.94),
    Policy("most clickbait", 18.94),  # the optimum itself; 18.97 in 8,000 simulated sessions
    "docs/simulators/long_term_satisfaction.md, dynamic programming",
)
_INFORMATIVE = ScoreScale(  # the greedy one, most clickbait, has 13.88
    Policy("random documents", 15.87),
    Policy("optimum that sees the exposure", 17.20),
    Policy("least clickbait", 16.67),
    "docs/simulators/long_term_satisfaction.md, dynamic programming",
)
_RECOGYM = ScoreScale(
    Policy("random products", 0.0113),
    Policy("oracle that knows the user", 0.0184),
    Policy("most popular product", 0.0150),
    "docs/simulators/recogym.md",
)
_QUALITY = ScoreScale(
    Policy("random slates", -0.60),
    Policy("ratio 1.5, the best return known", 2.24),
    source="docs/simulators/interest_evolution.md",
)
_WATCHED = ScoreScale(  # in continuing traffic, where a session's end costs nothing
    Policy("random actions", 2.21),
    Policy("highest interest", 2.88),
    source="simulated over 4,000 sessions",
)

# Bazaar by (sparsity, state dependence): the best constant, and the oracle that sees the hidden
# interest; each simulated over 4,096 sessions.
_BAZAAR = {
    (0.01, 0.0): (0.286, 0.286),
    (0.01, 0.5): (0.100, 0.302),
    (0.01, 0.75): (0.035, 0.299),
    (0.01, 1.0): (0.011, 0.299),
    (0.02, 0.0): (0.454, 0.454),
    (0.02, 0.5): (0.188, 0.467),
    (0.02, 0.75): (0.068, 0.456),
    (0.02, 1.0): (0.024, 0.461),
    (0.05, 0.0): (0.653, 0.653),
    (0.05, 0.5): (0.378, 0.656),
    (0.05, 0.75): (0.162, 0.652),
    (0.05, 1.0): (0.075, 0.649),
}
_BAZAAR_DEFAULTS = {
    "items": 1000, "features": 8, "topics": 20, "slate": 10, "individuality": 0.1, "drift": 0.05,
    "patience": 3.0, "pages": 8.0, "world_seed": 0, "actions": "continuous", "generosity": 0.0,
}  # fmt: skip


def _bazaar(sparsity: float, dependence: float) -> Platform:
    constant, oracle = _BAZAAR[sparsity, dependence]
    scale = ScoreScale(
        Policy("random actions", sparsity),
        Policy("oracle that sees the hidden interest", oracle),
        Policy("shared taste for everybody", constant),
        "docs/simulators/bazaar.md",
    )
    settings = {**_BAZAAR_DEFAULTS, "sparsity": sparsity, "state_dependence": dependence}
    return Platform("bazaar", settings, {"ctr": scale, REWARD: _times(scale, 10)})


PLATFORMS: tuple[Platform, ...] = (
    Platform(
        "virtual-taobao",
        {"generated": False, "items_per_page": 10},
        {"ctr": _TAOBAO, REWARD: _times(_TAOBAO, 10)},
    ),
    Platform(
        "long-term-satisfaction",
        {"sensitivity": 0.01, "num_candidates": 20, "slate_size": 1, "time_budget": 60},
        {"reward_per_step": _SATISFACTION, REWARD: _SATISFACTION},
    ),
    Platform(
        "long-term-satisfaction",
        {"sensitivity": 0.1, "num_candidates": 20, "slate_size": 1, "time_budget": 60},
        {"reward_per_step": _INFORMATIVE, REWARD: _INFORMATIVE},
    ),
    Platform(
        "interest-evolution",
        {"num_candidates": 20, "slate_size": 3, "actions": "continuous", "num_clusters": 20},
        {"quality": _QUALITY, REWARD: _WATCHED},
    ),
    Platform(
        "recogym",
        {"random_seed": 42, "num_products": 10, "number_of_flips": 0, "version": 1},
        {"ctr": _RECOGYM, REWARD: _RECOGYM},
    ),
    *(_bazaar(sparsity, dependence) for sparsity, dependence in _BAZAAR),
)
