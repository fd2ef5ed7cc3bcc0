"""What the live page shows: one state per second, as plain numbers, and the page itself."""

import math
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from lser.online.arms import Arms, Bin
from lser.online.books import Books, finite
from lser.online.items import Items
from lser.online.joins import Decision
from lser.online.recommender import Recommender
from lser.online.service.metrics import Meter

POINTS = 120  # of a curve on the page
SHOWN_VERSIONS = 6
VISITS = 6
PAGE_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; connect-src 'self'; img-src data:",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
}


@cache
def _template() -> str:
    return files("lser.online.service").joinpath("live.html").read_text("utf-8")


def page(title: str) -> str:
    """The page: one file that needs nothing else."""
    return _template().replace("{{title}}", escape(title))


def snapshot(recommender: Recommender, meter: Meter) -> dict[str, Any]:
    """Everything that the page shows."""
    books = recommender.books
    learner = recommender.keeper.learner
    head = recommender.log.head
    with books.lock:
        return {
            "at": recommender.log.now(),
            "arms": arms(books.arms),
            "curves": {arm: curve(bins) for arm, bins in books.arms.curve.items()},
            "traffic": meter.recent(),
            "counts": {**books.counts, "open": len(books.joins), "visitors": len(books.visitors)},
            "items": len(books.items),
            "log": {"head": head, "refused": recommender.log.refused},
            "lag": max(0, head - learner.get("cursor", 0)),
            "learner": {**learner, "restarts": recommender.keeper.restarts},
            "policies": policies(books),
            "sessions": [session(books.items, decision) for decision in _visits(books)],
        }


def arms(found: Arms) -> list[dict[str, Any]]:
    """Every arm with its click rate and confidence sequence."""
    listed = []
    for name, share in found.settings.arms:
        tally = found.total.get(name)
        interval = tally.interval() if tally else None
        versions = found.versions.get(name)
        listed.append(
            {
                "name": name,
                "share": share,
                "control": name == found.control,
                "cold": found.cold(name),
                "version": versions.current if versions else 0,
                "held": bool(versions and versions.held),
                "pages": tally.pages if tally else 0,
                "visitors": tally.visitors if tally else 0,
                "ctr": finite(interval.estimate) if interval else None,
                "low": finite(interval.low) if interval else None,
                "high": finite(interval.high) if interval else None,
            }
        )
    return listed


def curve(bins: Any) -> list[list[float]]:
    """Time, click rate and its 95 % band (Wilson's) over stretches of a curve."""
    listed: list[Bin] = list(bins)
    step = max(1, math.ceil(len(listed) / POINTS))
    points = []
    for start in range(0, len(listed), step):
        part = listed[start : start + step]
        clicks, shown = sum(b.clicks for b in part), sum(b.shown for b in part)
        if shown:
            points.append([part[0].start, *wilson(clicks, shown)])
    return points


def wilson(hits: float, count: float, z: float = 1.96) -> tuple[float, float, float]:
    """A share with Wilson's interval."""
    share = hits / count
    centre = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count**2)) / (1 + z * z / count)
    return share, max(0.0, centre - half), min(1.0, centre + half)


def policies(books: Books) -> dict[str, Any]:
    """The newest versions of every learner."""
    found = {}
    with books.lock:
        for arm, versions in books.arms.versions.items():
            latest = list(versions.about.items())[-SHOWN_VERSIONS:]
            if versions.current in versions.about and versions.current not in dict(latest):
                latest.insert(0, (versions.current, versions.about[versions.current]))
            found[arm] = {
                "current": versions.current,
                "stable": versions.stable,
                "held": versions.held,
                "versions": [
                    {
                        "version": number,
                        "state": about["state"],
                        "pages": about["pages"],
                        "updates": about["updates"],
                        "overlap": about["shadow"]["overlap"],
                        "problems": about["shadow"]["problems"],
                    }
                    for number, about in reversed(latest)
                ],
            }
    return found


def _visits(books: Books) -> list[Decision]:
    """The newest pages that visitors have had a moment to look at, newest first."""
    newest = list(reversed(books.latest))
    answered = [decision for decision in newest if decision.at <= books.at - 1.0]
    return (answered or newest)[:VISITS]


def session(items: Items, decision: Decision) -> dict[str, Any]:
    """A page as people see it."""
    return {
        "session": decision.session,
        "arm": decision.arm,
        "version": decision.version,
        "at": decision.at,
        "items": [[label(items, id), id in decision.clicked] for id in decision.items[:20]],
    }


def label(items: Items, id: str) -> str:
    """An item's title where it has one, else its id."""
    row = items.row.get(id)
    if row is None:
        return id
    known = items.attributes(row)
    return str(known.get("title") or known.get("name") or id)


def item(items: Items, row: int) -> dict[str, Any]:
    """An item as the catalogue has it."""
    return {
        "id": items.ids[row],
        "vector": items.vectors[row].tolist(),
        "attributes": items.attributes(row),
    }
