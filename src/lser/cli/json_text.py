"""JSON for other programs: a number that is none (NaN, infinity) becomes null, as JSON has none."""

import json
import math
from typing import Any


def json_text(value: Any) -> str:
    """A value of dicts, lists and plain values as one line of JSON."""
    return json.dumps(_finite(value), allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
