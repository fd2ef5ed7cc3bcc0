"""Text from records made fit to be shown, sorted and used as a name of a file."""

import re
import unicodedata

LONGEST = 80  # characters of a name that is shown or used for a file


def clean(text: str, longest: int = 200) -> str:
    """``text`` on one line, without control characters, cut where it is too long."""
    shown = "".join(" " if c.isspace() else c for c in text if c.isspace() or _visible(c))
    shown = " ".join(shown.split())
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def slug(text: str) -> str:
    """Plain letters, digits, dots and dashes: a name for a file or an anchor, never a path."""
    name = re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")
    return name[:LONGEST].strip("-.") or "unnamed"


def unique(name: str, taken: set[str]) -> str:
    """``name``, or where it is taken one with a number behind it; notes it as taken."""
    found, number = name, 2
    while found in taken:
        found, number = f"{name}-{number}", number + 1
    taken.add(found)
    return found


def natural(text: str) -> tuple[tuple[int, float, str], ...]:
    """A sort key that puts 9 before 10 inside text."""
    parts = re.split(r"([0-9]+(?:\.[0-9]+)?)", text.replace(",", ""))
    return tuple(
        (0, float(part), "") if position % 2 else (1, 0.0, part)  # numbers are every second part
        for position, part in enumerate(parts)
        if part
    )


def _visible(character: str) -> bool:
    return unicodedata.category(character)[0] != "C"
