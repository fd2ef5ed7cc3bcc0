"""What both of RecSim's worlds show: slates of documents from a set of candidates."""

from typing import Literal

from lser.checks import check_count

Actions = Literal["continuous", "slate", "discrete"]


def check_slates(num_candidates: int, slate_size: int) -> None:
    """Refuse numbers of documents that cannot be shown."""
    check_count("num_candidates", num_candidates, high=1_000_000)
    if not 1 <= slate_size <= num_candidates:
        raise ValueError(
            f"slate_size must be in 1..num_candidates={num_candidates}, got {slate_size}"
        )
