"""What can be chosen about VirtualTaobao."""

from dataclasses import dataclass
from pathlib import Path

from lser.checks import check_fields


@dataclass(frozen=True, kw_only=True)
class Params:
    """Where the networks come from, and the constants of the release."""

    weights: str | Path | None = None  # folder; None: LSER_VIRTUAL_TAOBAO, cache, download
    generated: bool = False  # random networks of the same shape instead, for tests without files
    generated_seed: int = 0
    items_per_page: int = 10  # the denominator of CTR
    negative_slope: float = 0.01  # of LeakyReLU

    def __post_init__(self) -> None:
        check_fields(self)
        if not isinstance(self.weights, str | Path | None):
            raise ValueError(f"weights must be the path of a folder, got {self.weights!r}")
        if self.generated and self.weights is not None:
            raise ValueError(f"generated=True excludes weights={str(self.weights)!r}")
        if self.generated_seed < 0:
            raise ValueError(f"generated_seed must be at least 0, got {self.generated_seed}")
        if self.items_per_page < 1:
            raise ValueError(f"items_per_page must be at least 1, got {self.items_per_page}")
        if not 0 <= self.negative_slope < 1:
            raise ValueError(f"negative_slope must be in [0, 1), got {self.negative_slope}")
