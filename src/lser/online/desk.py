"""The desk: what a request becomes, checked and complete, before it is logged.

Nothing here writes. A decision's page is drawn and a report's id is found, so that the log is
handed an event that needs nothing more.
"""

import hashlib
import itertools
import math
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import orjson

from lser.online.books import Books
from lser.online.covisits import start_vectors
from lser.online.item_files import check_id
from lser.online.items import CHUNK, Filter, Value, check_vectors, packed, put_body
from lser.online.log import Entry, Log, Receipt
from lser.online.policies import Policy, RandomPolicy
from lser.online.serving import Choice, choose
from lser.types import Float32

MOST_PLACES = 1_000
_RANDOM = RandomPolicy()


class ConflictError(ValueError):
    """An id that was used before for something else."""


class Request(NamedTuple):
    """What a page is asked for; see `Recommender.recommend`."""

    user: str | None = None
    features: Sequence[float] | Float32 | None = None
    k: int | None = None
    id: str | None = None
    session: str | None = None
    among: Sequence[str] | None = None
    where: Filter | None = None
    exclude: Sequence[str] = ()

    def limits(self) -> dict[str, Any]:
        """What limits the items, for the log."""
        named = {"among": self.among, "where": self.where, "exclude": self.exclude}
        return {name: value for name, value in named.items() if value}


class Page(NamedTuple):
    """A recommended page."""

    id: str  # for `feedback`
    items: list[str]
    propensities: list[float]  # the chance of each item at its place, given those above it
    arm: str
    policy: str  # learner and version
    session: str
    at: float


class Asked(NamedTuple):
    """A decision that is made and not yet logged."""

    entry: Entry
    user: str | None
    body: dict[str, Any]  # of the entry


class Desk:
    """Makes the events of a shop."""

    def __init__(self, log: Log, books: Books, policies: dict[tuple[str, int], Policy]) -> None:
        """Go by the books and by `policies` (learner and version -> policy) as they are."""
        self._log, self._books, self._policies = log, books, policies
        self._name, self._numbers = f"{secrets.token_hex(8)}-", itertools.count(1)  # of pages

    def decision(self, request: Request) -> "Asked":
        """What is asked for, with its event, not yet logged."""
        books, settings, user = self._books, self._books.settings, request.user
        given = check_features(request.features, settings.features)
        k = settings.k if request.k is None else check_count("k", request.k, MOST_PLACES)
        id = f"{self._name}{next(self._numbers):x}" if request.id is None else request.id
        for name, value in (("id", id), ("user", user), ("session", request.session)):
            if value is not None:
                check_id(name, value)
        visitor = user or request.session or id  # none of them is empty
        mask = books.items.eligible(
            among=request.among, where=request.where, exclude=request.exclude
        )
        with books.lock:
            now = self._log.now()
            visit = 1 if user is None else books.visitors.session(
                user, now, settings.session_timeout
            )  # fmt: skip
            observation = books.visitors.observe(user, given, now)
            arm, learner, version, cold = books.arms.policy_for(visitor)
        policy = self._policies.get((learner, version), _RANDOM) if version else _RANDOM
        session = request.session if request.session is not None else f"{visitor}/{visit}"
        choice = choose(
            policy, observation, books.items, books.nearest, settings,
            k=k, mask=mask, decision=id, visit=session,
        )  # fmt: skip
        body: dict[str, Any] = {
            "user": user,
            "session": session,
            "visit": visit,
            "arm": arm,
            "learner": learner,
            "version": version if policy is not _RANDOM else 0,
            "cold": cold,
            "layout": settings.layout,
            "observation": packed(observation),
            "given": given is not None,
            **_described(choice, books.items.ids),
        }
        if mask is not None:
            body["limits"] = request.limits()
        return Asked(Entry("decision", id, orjson.dumps(body)), user, body)

    def page(self, receipt: Receipt, asked: "Asked") -> Page:
        """The page that the log holds for a decision."""
        event = receipt.event
        body = asked.body if receipt.new else orjson.loads(event.body)
        if body["user"] != asked.user:
            raise ConflictError(f"id {event.id!r} was used before for another user")
        return Page(
            str(event.id),
            body["items"],
            body["propensities"],
            body["arm"],
            f"{body['learner']}-{body['version']}",
            body["session"],
            event.at,
        )

    def report(
        self,
        page: str,
        clicks: Sequence[str] = (),
        value: float | None = None,
        *,
        id: str | None = None,
    ) -> Entry:
        """The event of `feedback`, not yet logged."""
        check_id("page", page)
        clicked = [check_id("click", item) for item in clicks]
        if len(clicked) > MOST_PLACES:
            raise ValueError(f"clicks must name at most {MOST_PLACES} items, got {len(clicked)}")
        body: dict[str, Any] = {"decision": page, "clicks": clicked}
        if value is not None:
            number = float(value)
            if not abs(number) <= 1e9:
                raise ValueError(f"value must be a number up to 1e9 in size, got {value!r}")
            body["value"] = number
        if id is None:
            told = f"{'/'.join(sorted(set(clicked)))}={body.get('value', '')}"
            id = f"{page}:{told}" if len(told) < 200 else f"{page}:{_digest(told)}"
        else:
            check_id("id", id)
        return Entry("feedback", id, orjson.dumps(body))

    def item_changes(
        self,
        ids: Sequence[str],
        vectors: Any = None,
        attributes: Sequence[Mapping[str, Value] | None] | None = None,
    ) -> list[Entry]:
        """The events of `put_items`, not yet logged."""
        items, settings = self._books.items, self._books.settings
        ids = [check_id("item id", id) for id in ids]
        if attributes is not None and len(attributes) != len(ids):
            raise ValueError(f"attributes must be {len(ids)} mappings, got {len(attributes)}")
        if vectors is None:
            if not settings.learned_vectors:
                raise ValueError("vectors must be given: this catalogue has vectors")
            fresh = start_vectors(ids, settings.dim)
            known = [items.row.get(id) for id in ids]
            for place, row in enumerate(known):
                if row is not None:
                    fresh[place] = items.vectors[row]
            vectors = fresh
        else:
            vectors = check_vectors(vectors, len(ids), settings.dim) * np.float32(settings.scale)
        changed = [
            place
            for place, id in enumerate(ids)
            if (row := items.row.get(id)) is None
            or not np.array_equal(items.vectors[row], vectors[place])
            or (attributes is not None and (attributes[place] or {}) != items.attributes(row))
        ]
        entries = []
        for start in range(0, len(changed), CHUNK):
            part = changed[start : start + CHUNK]
            described = None if attributes is None else [attributes[place] for place in part]
            body = put_body([ids[place] for place in part], vectors[part], described)
            entries.append(Entry("items", None, body))
        return entries


def _described(choice: Choice, ids: Sequence[str]) -> dict[str, Any]:
    """A page, as the body of its event has it."""
    return {
        "direction": None if choice.direction is None else packed(choice.direction),
        "items": [ids[row] for row in choice.slate.rows.tolist()],
        "propensities": choice.slate.propensities.tolist(),
        "random": choice.slate.random,
        "eligible": choice.eligible,
    }


def check_features(features: Any, count: int) -> Float32 | None:
    """Features as `count` finite numbers, or None where none are given."""
    if features is None:
        return None
    try:
        array = np.array(features, np.float32)
    except (TypeError, ValueError):
        raise ValueError("features must be a list of numbers") from None
    if array.shape != (count,):
        raise ValueError(f"features must be {count} numbers, got shape {array.shape}")
    if not math.isfinite(sum(array.tolist())):  # few numbers: half the time of NumPy's
        raise ValueError("features must be finite")
    return array


def check_count(name: str, value: Any, most: int) -> int:
    """A whole number from 1 to `most`."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise ValueError(f"{name} must be a whole number from 1 to {most}, got {value!r}")
    return value


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
