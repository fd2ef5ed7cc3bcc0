"""Pages of a log as learners see them: what was known, what was shown, what was clicked."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import orjson

from lser.online.items import Items, unpacked
from lser.online.joins import Decision, Joins
from lser.online.log import Reader
from lser.online.settings import Settings
from lser.types import Float32, Int64


class Seen(NamedTuple):
    """A page whose window is over."""

    at: float
    session: str
    observation: Float32  # (O,)
    direction: Float32 | None  # (d,)
    rows: Int64  # (k,) of the items shown
    clicked: Float32  # (k,)
    reward: float


def closed(decision: Decision, items: Items) -> Seen:
    """A page that was decided here, once it is closed."""
    body, row = decision.body, items.row
    kept = [item for item in body["items"] if item in row]
    return Seen(
        decision.at,
        decision.session,
        unpacked(body["observation"]),
        None if body["direction"] is None else unpacked(body["direction"]),
        np.array([row[item] for item in kept], np.int64),
        np.array([item in decision.clicked for item in kept], np.float32),
        decision.reward,
    )


def recalled(page: Mapping[str, Any], items: Items) -> Seen:
    """A page of the past, imported."""
    kept = [place for place, item in enumerate(page["items"]) if item in items.row]
    clicked = np.array([page["clicked"][place] for place in kept], np.float32)
    return Seen(
        page["at"],
        page["session"],
        unpacked(page["observation"]),
        None,
        np.array([items.row[page["items"][place]] for place in kept], np.int64),
        clicked,
        float(clicked.sum()),
    )


def pages(reader: Reader) -> Iterator[tuple[Seen, Float32]]:
    """All closed pages of a log, oldest first, each with the vectors of its items as they were."""
    first = next(reader.of_kind("settings"), None)
    if first is None:
        raise ValueError("the log has no settings")
    settings = Settings.from_json(orjson.loads(first.body))
    items, joins, cursor = Items(settings.dim), Joins(settings.window), 0
    while events := reader.read(cursor):
        for event in events:
            found = [closed(decision, items) for decision in joins.fold(event)]
            match event.kind:
                case "settings":
                    joins.window = Settings.from_json(orjson.loads(event.body)).window
                case "items":
                    items.apply(orjson.loads(event.body))
                case "past":
                    found += [recalled(page, items) for page in orjson.loads(event.body)["pages"]]
            yield from ((page, items.vectors[page.rows]) for page in found)
        cursor = events[-1].seq
