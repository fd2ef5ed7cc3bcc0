"""How a constructor's knobs are read: a frozen `Params` dataclass, and overrides by name."""

import dataclasses
import difflib
from typing import Any


def make_params(kind: Any, params: Any, overrides: dict[str, Any]) -> Any:
    """`params` (or the defaults) with `overrides`; unknown names are errors that say what is."""
    known = [field.name for field in dataclasses.fields(kind)]
    for name in overrides:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=3)
            hint = f"; did you mean {', '.join(near)}?" if near else f"; known: {', '.join(known)}"
            raise ValueError(f"unknown parameter {name!r}{hint}")
    if params is None:
        return kind(**overrides)
    if not isinstance(params, kind):
        raise ValueError(f"params must be a {kind.__qualname__}, got {params!r}")
    return dataclasses.replace(params, **overrides)
