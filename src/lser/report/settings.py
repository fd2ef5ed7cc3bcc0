"""Settings of experiments as flat paths, and the words for what sets two of them apart."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from lser.report.naming import clean

_ABSENT = "not recorded"


def flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The leaves of nested settings by their path: ``{"memory.bits": 10}``."""
    found: dict[str, Any] = {}
    for key, inner in value.items():
        if isinstance(inner, Mapping):
            found.update(flat(inner, f"{prefix}{key}."))
        else:
            found[f"{prefix}{key}"] = inner
    return found


def canonical(value: Any) -> str:
    """Text that is equal where values are; 1 and 1.0 are."""
    return json.dumps(_plain(value), sort_keys=True)


def apart(
    names: Sequence[tuple[str, ...]], settings: Sequence[Mapping[str, Any]]
) -> tuple[list[str], list[str]]:
    """Words that tell apart those of equal name, and every setting in which these differ.

    The length of a run, and what follows from it, is expected to differ and not among the latter.
    """
    words = [""] * len(names)
    strays: set[str] = set()
    same: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for position, name in enumerate(names):
        same[name].append(position)
    for group in same.values():
        alike = [settings[position] for position in group]
        paths = _telling(alike)
        strays.update(_strays(alike))
        for position in group:
            parts = [_words(path, settings[position]) for path in paths]
            words[position] = ", ".join(parts)
    return words, sorted(strays)


def _telling(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Few paths that together tell all of ``settings`` apart, greedily."""
    paths = sorted({path for setting in settings for path in setting})
    chosen: list[str] = []
    while _distinct(settings, chosen) < len(settings):
        left = [path for path in paths if path not in chosen]
        best = max(
            left, key=lambda path: (_distinct(settings, [*chosen, path]), path == "sessions")
        )
        if _distinct(settings, [*chosen, best]) == _distinct(settings, chosen):
            break  # equal in everything
        chosen.append(best)
    return chosen


def _strays(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """The paths in which settings of one length differ."""
    paths = {path for setting in settings for path in setting}
    lengths = _distinct(settings, ["sessions"])
    return [path for path in paths if _distinct(settings, ["sessions", path]) > lengths]


def _distinct(settings: Sequence[Mapping[str, Any]], paths: Sequence[str]) -> int:
    return len({canonical([setting.get(path, _ABSENT) for path in paths]) for setting in settings})


def _words(path: str, setting: Mapping[str, Any]) -> str:
    value = setting.get(path, _ABSENT)
    if path == "sessions" and isinstance(value, int):
        return f"{value:,} sessions"
    return clean(f"{path.rpartition('.')[2].replace('_', ' ')} {value}")


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value
