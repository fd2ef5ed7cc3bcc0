"""Every constant of RecSim's long-term satisfaction, and a preset where the long term matters."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lser.checks import check_fields
from lser.simulators.recsim.slates import Actions, check_slates


@dataclass(frozen=True)
class Params:
    """Every constant of the simulator; the defaults are RecSim's.

    Attributes:
        num_candidates: Documents to choose from.
        slate_size: Documents shown; the user always takes the first.
        resample_documents: Draw new candidates at every step; else one catalogue for all.
        catalogue: Clickbait of the fixed documents when `resample_documents` is False; drawn
            when None.
        catalogue_seed: Seed of a drawn catalogue; 0 gives the documents RecSim always has.
        actions: "continuous": a clickbait to aim at, the nearest candidates are shown; "slate":
            indices of candidates, repeats allowed; "discrete": one candidate's index.
        short_slates: With slate actions, -1 leaves a slot after the first empty.
        memory_discount: How much exposure lasts from one page to the next.
        sensitivity: How strongly satisfaction follows exposure.
        innovation_stddev: Noise of the exposure.
        choc_mean: Log engagement of pure clickbait at full satisfaction.
        choc_stddev: Its spread.
        kale_mean: Log engagement of a document without clickbait at full satisfaction.
        kale_stddev: Its spread.
        time_budget: Pages of a session.
        max_engagement: Engagement is observed up to this value (the reward is not clipped).
        exposure_memory: Factor of the recommender's own running exposure in the observation.
    """

    num_candidates: int = 20
    slate_size: int = 1
    resample_documents: bool = True
    catalogue: tuple[float, ...] | None = None
    catalogue_seed: int = 0
    actions: Actions = "continuous"
    short_slates: bool = False
    memory_discount: float = 0.7
    sensitivity: float = 0.01
    innovation_stddev: float = 0.05
    choc_mean: float = 5.0
    choc_stddev: float = 1.0
    kale_mean: float = 4.0
    kale_stddev: float = 1.0
    time_budget: float = 60
    max_engagement: float = 100.0
    exposure_memory: float = 0.7

    @classmethod
    def informative(cls, **overrides: Any) -> "Params":
        """The preset with a trade-off: sensitivity .1, all else as RecSim has it.

        Most clickbait first then falls below random documents, the least all the time is the best
        constant, and the optimum, which mixes and changes towards the end, is above it.
        """
        return replace(cls(sensitivity=0.1), **overrides)

    def __post_init__(self) -> None:
        """Refuse what cannot be simulated."""
        check_fields(self)
        check_slates(self.num_candidates, self.slate_size)
        for name in ("memory_discount", "exposure_memory"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must be in [0, 1), got {getattr(self, name)}")
        for name in ("innovation_stddev", "choc_stddev", "kale_stddev"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must be at least 0, got {getattr(self, name)}")
        if self.time_budget < 1 or self.time_budget != int(self.time_budget):
            raise ValueError(f"time_budget must be whole and at least 1, got {self.time_budget}")
        if self.max_engagement < 1:
            raise ValueError(f"max_engagement must be at least 1, got {self.max_engagement}")
        for mean, spread in (("choc_mean", "choc_stddev"), ("kale_mean", "kale_stddev")):
            highest = abs(getattr(self, mean)) + 8 * getattr(self, spread)
            if highest > 80:  # engagement is its exponential, in float32
                raise ValueError(
                    f"{mean} and {spread} must keep |mean| + 8 deviations at 80 or less, "
                    f"got {getattr(self, mean)} and {getattr(self, spread)}"
                )
        self._check_catalogue()

    def _check_catalogue(self) -> None:
        if self.catalogue is None:
            return
        if self.resample_documents:
            raise ValueError("catalogue needs resample_documents=False, got True")
        if len(self.catalogue) != self.num_candidates:
            raise ValueError(
                f"catalogue must have num_candidates={self.num_candidates} documents, "
                f"got {len(self.catalogue)}"
            )
        for clickbait in self.catalogue:
            if not 0 <= clickbait <= 1:
                raise ValueError(f"catalogue must hold numbers in [0, 1], got {clickbait}")


def draw_catalogue(params: Params) -> tuple[float, ...]:
    """The documents RecSim draws with seed `catalogue_seed`."""
    rng = np.random.RandomState(params.catalogue_seed)
    return tuple(rng.random_sample(params.num_candidates).tolist())
