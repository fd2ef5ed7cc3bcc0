"""RecoGym's parameters, with the original's names and defaults, and the presets."""

from dataclasses import dataclass
from typing import Literal

from lser.checks import check_fields


@dataclass(frozen=True, kw_only=True)
class Params:
    """Every parameter of the original environments, then how an agent sees and acts."""

    version: Literal[0, 1] = 1
    """1: hidden interests of K factors; 0: tables by last view."""
    random_seed: int = 42
    """Of the world (products and tables): the same seed gives the original's world."""
    num_products: int = 10
    prob_leave_bandit: float = 0.01
    """Ignored, as in the original, unless `use_prob_leave_bandit`."""
    use_prob_leave_bandit: bool = False
    """The fix: leave from bandit with `prob_leave_bandit`, not with `prob_leave_organic`."""
    prob_leave_organic: float = 0.01
    prob_bandit_to_organic: float = 0.05
    prob_organic_to_bandit: float = 0.25
    K: int = 5
    sigma_omega_initial: float = 1.0
    sigma_omega: float = 0.1
    sigma_mu_organic: float = 3.0
    number_of_flips: int = 0
    """Pairs of similar products whose clicks follow the other's views."""
    normalize_beta: bool = False
    change_omega_for_bandits: bool = False
    time_generator: Literal["default", "normal"] = "default"
    normal_time_mu: float = 0.0
    normal_time_sigma: float = 1.0
    num_clusters: int = 2
    """Version 0: groups of products between which users do not move."""
    phi_var: float = 0.1
    """Version 0: variance between what is viewed and what is clicked."""
    actions: Literal["continuous", "embedding", "discrete"] = "continuous"
    """A score per product, a point in the co-view embedding, or the product itself."""
    observation: Literal["counts", "log_counts", "embedding"] = "counts"
    """How the views so far are told: per product, on a log scale, or in the embedding."""
    embedding_dim: int = 5
    """Factors of the embedding, beside popularity."""
    embedding_users: int = 10_000
    """Users whose first organic sessions make the embedding."""
    reward: Literal["click", "expected click"] = "click"
    """What is rewarded: the click, or its probability (the same in the mean, without its noise)."""
    reward_scale: float = 1.0
    """Factor of the reward."""

    def __post_init__(self) -> None:
        check_fields(self)
        self._check_choices()
        for name in ("num_products", "K", "num_clusters", "embedding_dim", "embedding_users"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if not 0 <= self.random_seed < 2**32:
            raise ValueError(f"random_seed must be in 0..2^32-1, got {self.random_seed}")
        if self.number_of_flips < 0:
            raise ValueError(f"number_of_flips must be at least 0, got {self.number_of_flips}")
        for name in (
            "sigma_omega_initial",
            "sigma_omega",
            "sigma_mu_organic",
            "normal_time_sigma",
            "phi_var",
        ):
            if not 0.0 <= getattr(self, name) < float("inf"):
                raise ValueError(f"{name} must be finite and >= 0, got {getattr(self, name)}")
        if not 0.0 < self.reward_scale < float("inf"):
            raise ValueError(f"reward_scale must be positive, got {self.reward_scale}")
        self._check_probabilities()
        if self.version == 0 and self.num_products % self.num_clusters:
            raise ValueError(
                f"num_products must be a multiple of num_clusters ({self.num_clusters}), "
                f"got {self.num_products}"
            )

    def _check_choices(self) -> None:
        for name, known in (
            ("version", (0, 1)),
            ("time_generator", ("default", "normal")),
            ("actions", ("continuous", "embedding", "discrete")),
            ("observation", ("counts", "log_counts", "embedding")),
            ("reward", ("click", "expected click")),
        ):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {known}, got {getattr(self, name)!r}")

    def _check_probabilities(self) -> None:
        for name in (
            "prob_leave_bandit",
            "prob_leave_organic",
            "prob_bandit_to_organic",
            "prob_organic_to_bandit",
        ):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"{name} must be in [0, 1], got {getattr(self, name)}")
        if self.prob_organic_to_bandit < 1e-6:
            raise ValueError(
                f"prob_organic_to_bandit must be at least 1e-6, got {self.prob_organic_to_bandit}: "
                "nobody would come to a recommendation"
            )
        leave_bandit = (
            self.prob_leave_bandit if self.use_prob_leave_bandit else self.prob_leave_organic
        )
        if self.prob_organic_to_bandit + self.prob_leave_organic > 1.0:
            raise ValueError(
                "prob_organic_to_bandit + prob_leave_organic must be at most 1, got "
                f"{self.prob_organic_to_bandit + self.prob_leave_organic}"
            )
        if self.prob_bandit_to_organic + leave_bandit > 1.0:
            raise ValueError(
                "prob_bandit_to_organic + the probability to leave must be at most 1, got "
                f"{self.prob_bandit_to_organic + leave_bandit}"
            )


PRESETS: dict[str, Params] = {
    # organic views nearly solve the default; here recommending what was viewed is close to random
    "informative": Params(random_seed=7, number_of_flips=4),
    "large": Params(num_products=10_000, actions="embedding", observation="embedding"),
}
