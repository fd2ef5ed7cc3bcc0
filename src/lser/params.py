"""How a constructor's knobs are read: a frozen `Params` dataclass, and overrides by name."""

import dataclasses
import inspect
import math
from typing import Any, Self

from lser.catalogue import nearest
from lser.checks import check_fields, plain_number


@dataclasses.dataclass(frozen=True, kw_only=True)
class MemoryParams:
    """The settings of a memory: its constructor's, the command line's and the record's."""

    newest: int = 0
    """Places of every batch for the newest transitions; one at least stays for the draw."""

    def __post_init__(self) -> None:
        check_fields(self, largest=math.inf)

    def slot_bytes(self, observation_dim: int) -> int:
        """Bytes that a slot takes beside its row: its id, and what the rule keeps of it."""
        return 72  # enough for each of ours, of which HER's links take most

    def for_run(self, updates: int, discount: float, goals: tuple[float, ...]) -> Self:
        """These settings in a run of so many updates, an agent's discount, a simulator's goals."""
        return self


def make_params(kind: Any, params: Any, overrides: dict[str, Any]) -> Any:
    """`params` (or the defaults) with `overrides`; unknown names are errors that say what is."""
    known = [field.name for field in dataclasses.fields(kind)]
    for name in overrides:
        nearest("parameter", name, known)
    overrides = {name: plain_number(value) for name, value in overrides.items()}
    if params is None:
        return kind(**overrides)
    if not isinstance(params, kind):
        raise ValueError(f"params must be a {kind.__qualname__}, got {params!r}")
    return dataclasses.replace(params, **overrides)


def show_knobs(kind: Any) -> None:
    """Let `help` and editors show the fields of `kind.Params` as keywords of its constructor."""
    params: Any = getattr(kind, "Params", None)
    if not dataclasses.is_dataclass(params):
        return
    fixed = [
        parameter
        for parameter in inspect.signature(kind.__init__).parameters.values()
        if parameter.name != "self" and parameter.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    knobs = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in inspect.signature(kind.Params).parameters.values()
        if parameter.name not in {known.name for known in fixed}
    ]
    kind.__signature__ = inspect.Signature(fixed + knobs)
