"""Clicks of the past as events of the log: they fill memories and counters before the first page.

A table of the past has one row for each item that somebody was shown or clicked: who (`user`),
what (`item`), when (`time`, seconds or ISO), and whether it was clicked (`clicked`, 0 or 1; where
the column is missing, every row is a click). Rows of one user that lie close together in time are
one page. A page of clicks alone says nothing about what was not clicked: `fill` adds random items.
"""

import hashlib
import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson

from lser.online.item_files import read_columns
from lser.online.items import packed
from lser.online.log import Entry
from lser.online.observation import Visitors
from lser.online.recommender import Recommender

CHUNK = 200  # pages in one event
_NAMES = {
    "user": ("user", "user_id", "visitor", "session", "session_id"),
    "item": ("item", "item_id", "product", "product_id", "sku"),
    "time": ("time", "timestamp", "at", "ts", "date"),
    "clicked": ("clicked", "click", "label", "is_click"),
    "page": ("page", "page_id", "impression", "impression_id", "request", "request_id"),
}


class PastPage(NamedTuple):
    """What one user was shown at one time."""

    user: str
    at: float
    items: list[str]
    clicked: list[int]


def read_past(path: Path, *, gap: float = 1.0) -> list[PastPage]:
    """The pages of a CSV or Parquet file, oldest first."""
    columns = read_columns(path)
    found = {name: _column(columns, name) for name in _NAMES}
    for name in ("user", "item", "time"):
        if found[name] is None:
            raise ValueError(f"{path} has no column for {name}: {', '.join(_NAMES[name])}")
    times = [_seconds(value) for value in found["time"] or ()]
    users, items = [[str(v) for v in found[name] or ()] for name in ("user", "item")]
    clicked = [_flag(v) for v in found["clicked"]] if found["clicked"] else [1] * len(items)
    pages = [str(v) for v in found["page"]] if found["page"] else None
    order = sorted(range(len(items)), key=lambda row: (times[row], row))
    made: list[PastPage] = []
    open_page: dict[str, tuple[str | None, PastPage]] = {}
    for row in order:
        user, page = users[row], pages[row] if pages else None
        known = open_page.get(user)
        same = known is not None and (
            known[0] == page if pages else times[row] - known[1].at <= gap
        )
        if known is None or not same:
            known = (page, PastPage(user, times[row], [], []))
            open_page[user] = known
            made.append(known[1])
        if items[row] not in known[1].items:
            known[1].items.append(items[row])
            known[1].clicked.append(clicked[row])
    return made


def bring_in(recommender: Recommender, pages: list[PastPage], *, fill: int = 0) -> int:
    """Log pages of the past; the same file again changes nothing. Returns the pages taken."""
    settings = recommender.settings
    visitors = Visitors(recommender.books.layout, settings.visitors)
    known = recommender.books.items
    rng = np.random.default_rng(settings.seed)
    taken = 0
    for start, chunk in _chunks(pages):
        listed = []
        for page in chunk:
            shown = [i for i, item in enumerate(page.items) if item in known.row]
            items = [page.items[i] for i in shown]
            clicked = [page.clicked[i] for i in shown]
            if not items:
                continue
            drawn = rng.choice(known.rows, min(fill, known.rows), replace=False) if fill else ()
            for row in map(int, drawn):
                if known.ids[row] not in items and known.live[row]:
                    items.append(known.ids[row])
                    clicked.append(0)
            observation = visitors.observe(page.user, None, page.at)
            vectors = known.vectors[[known.row[item] for item in items]]
            visitors.show(page.user, None, vectors, 1, page.at)
            hits = np.array(clicked, bool)
            visitors.click(page.user, vectors[hits], float(hits.mean()))
            listed.append(_body(page, items, clicked, observation))
        if listed:
            body = orjson.dumps({"pages": listed})
            digest = hashlib.blake2b(body, digest_size=12).hexdigest()
            receipt = recommender.log.append(Entry("past", f"{start}-{digest}", body))[0]
            taken += len(listed) if receipt.new else 0
    return taken


def _body(page: PastPage, items: list[str], clicked: list[int], observation: Any) -> dict[str, Any]:
    return {
        "user": page.user,
        "session": f"{page.user}/past",
        "at": page.at,
        "items": items,
        "clicked": clicked,
        "observation": packed(observation),
    }


def _chunks(pages: list[PastPage]) -> Iterator[tuple[int, list[PastPage]]]:
    for start in range(0, len(pages), CHUNK):
        yield start, pages[start : start + CHUNK]


def _column(columns: Mapping[str, list[Any]], name: str) -> list[Any] | None:
    lower = {key.lower(): key for key in columns}
    return next((columns[lower[n]] for n in _NAMES[name] if n in lower), None)


def _seconds(value: Any) -> float:
    if isinstance(value, datetime):
        return value.timestamp()
    with suppress(TypeError, ValueError):
        if math.isfinite(seconds := float(value)):
            return seconds
    with suppress(ValueError):
        return datetime.fromisoformat(str(value)).timestamp()
    raise ValueError(f"time must be seconds or an ISO date, got {value!r}")


def _flag(value: Any) -> int:
    with suppress(TypeError, ValueError):
        if float(value) in (0.0, 1.0):
            return int(float(value))
    raise ValueError(f"clicked must be 0 or 1, got {value!r}")
