"""Every constant of RecSim's interest evolution, and its fixed catalogue."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from lser.checks import check_fields
from lser.simulators.recsim.slates import Actions, check_slates
from lser.types import Float64


class Catalogue(NamedTuple):
    """A fixed set of documents: the cluster and the hidden quality of each."""

    cluster: tuple[int, ...]
    quality: tuple[float, ...]


@dataclass(frozen=True)
class Params:
    """Every constant of the simulator; the defaults are RecSim's.

    Attributes:
        num_candidates: Documents to choose from.
        slate_size: Documents shown; with discrete actions one is shown.
        resample_documents: Draw new candidates at every step; else one catalogue for all.
        catalogue: The fixed documents when `resample_documents` is False; drawn when None.
        catalogue_seed: Seed of a drawn catalogue; the same documents as RecSim's with this seed.
        actions: "continuous": a weight per cluster, the best k distinct candidates are shown;
            "slate": indices of candidates, repeats allowed; "discrete": one candidate's index.
        short_slates: With slate actions, -1 leaves a slot empty.
        num_clusters: Topics; 70 % of them have a mean quality below or at 0.
        min_utility: Mean quality of the worst cluster.
        max_utility: Mean quality of the best cluster.
        quality_std: Spread of quality within a cluster.
        video_length: Watch time of a click, as long as the budget lasts.
        time_budget: A new user's time.
        no_click_mass: Attraction of not clicking, in units of interest.
        min_normalizer: Subtracted from every attraction; at most -1, the lowest interest.
        step_penalty: Time lost by a page without a click.
        user_quality_factor: Weight of the user's interest in the utility of a click.
        document_quality_factor: Weight of the document's quality in the utility of a click.
        user_update_alpha: Share of the watch time that a unit of utility gives back.
        alpha_x_intercept: Absolute interest at which interests stop moving.
        alpha_y_intercept: Step size of an interest of 0.
        observe_response: Append the last page's click (0 or 1) and the quality of what was clicked.
        observe_step: Append the number of pages so far, in hundreds.
        reward: "watch time" (RecSim's) or "quality", that of the clicked document.
    """

    num_candidates: int = 20
    slate_size: int = 3
    resample_documents: bool = True
    catalogue: Catalogue | None = None
    catalogue_seed: int = 0
    actions: Actions = "continuous"
    short_slates: bool = False
    num_clusters: int = 20
    min_utility: float = -3.0
    max_utility: float = 3.0
    quality_std: float = 0.1
    video_length: float = 4.0
    time_budget: float = 200.0
    no_click_mass: float = 1.0
    min_normalizer: float = -1.0
    step_penalty: float = 0.5
    user_quality_factor: float = 0.0
    document_quality_factor: float = 1.0
    user_update_alpha: float = 0.9 * (1.0 / 3.4)
    alpha_x_intercept: float = 1.0
    alpha_y_intercept: float = 0.3
    observe_response: bool = False
    observe_step: bool = False
    reward: Literal["watch time", "quality"] = "watch time"

    def __post_init__(self) -> None:
        """Refuse what cannot be simulated."""
        check_fields(self)
        check_slates(self.num_candidates, self.slate_size)
        if not 2 <= self.num_clusters <= 32767:
            raise ValueError(f"num_clusters must be in 2..32767, got {self.num_clusters}")
        for name in ("quality_std", "user_update_alpha"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must be at least 0, got {getattr(self, name)}")
        for name in ("video_length", "time_budget", "step_penalty", "alpha_x_intercept"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)}")
        if not self.min_normalizer <= min(-1.0, self.no_click_mass):
            raise ValueError(
                f"min_normalizer must be at most -1 and at most no_click_mass="
                f"{self.no_click_mass}, got {self.min_normalizer}"
            )
        self._check_catalogue()

    def _check_catalogue(self) -> None:
        if self.catalogue is None:
            return
        if self.resample_documents:
            raise ValueError("catalogue needs resample_documents=False, got True")
        cluster, quality = self.catalogue
        if not len(cluster) == len(quality) == self.num_candidates:
            raise ValueError(
                f"catalogue must have num_candidates={self.num_candidates} clusters and "
                f"qualities, got {len(cluster)} and {len(quality)}"
            )
        for c in cluster:
            if not 0 <= c < self.num_clusters:
                raise ValueError(f"catalogue clusters must be in 0..{self.num_clusters - 1}: {c}")

    def cluster_means(self) -> Float64:
        """Mean quality of each cluster: from worst to 0, then from 0 to best (0 appears twice)."""
        trashy = int(self.num_clusters * 0.7)
        return np.concatenate(
            (
                np.linspace(self.min_utility, 0, trashy),
                np.linspace(0, self.max_utility, self.num_clusters - trashy),
            )
        )


def draw_catalogue(params: Params) -> Catalogue:
    """The documents RecSim draws with seed `catalogue_seed`, in its order of draws."""
    rng = np.random.RandomState(params.catalogue_seed)
    means = params.cluster_means()
    cluster, quality = [], []
    for _ in range(params.num_candidates):
        cluster.append(int(rng.randint(0, params.num_clusters)))
        quality.append(float(rng.normal(means[cluster[-1]], params.quality_std)))
    return Catalogue(tuple(cluster), tuple(quality))
