"""The recommender: pages for visitors, feedback for pages, and a log between them."""

import itertools
import secrets
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import orjson

from lser.online.books import Books
from lser.online.covisits import start_vectors
from lser.online.item_files import check_id, read_items
from lser.online.items import CHUNK, Filter, Value, check_vectors, packed, put_body, remove_body
from lser.online.keeper import Keeper
from lser.online.log import Entry, Receipt
from lser.online.policies import Policy, RandomPolicy
from lser.online.serving import choose
from lser.online.settings import Settings
from lser.online.sqlite_log import FILE, Durability, SqliteLog, SqliteReader
from lser.types import Float32

MOST_PLACES = 1_000
LearnerPlace = Literal["thread", "process", "off"]
_RANDOM = RandomPolicy()


class ConflictError(ValueError):
    """An id that was used before for something else."""


class Page(NamedTuple):
    """A recommended page."""

    id: str  # for `feedback`
    items: list[str]
    propensities: list[float]  # the chance of each item at its place, given those above it
    arm: str
    policy: str  # learner and version
    session: str
    at: float


class Recommender:
    """Recommends from a catalogue, logs what it does, and learns from what comes back.

    Safe to use from many threads. The log's folder holds everything; `open` continues with it.
    """

    def __init__(
        self,
        items: Any = None,
        log: str | Path = "shop",
        *,
        features: int = 0,
        settings: Settings | None = None,
        durability: Durability = "process",
        learner: LearnerPlace = "thread",
    ) -> None:
        """Start a shop in the folder `log`, or continue it and add `items` to its catalogue.

        Args:
            items: An array (M, d), (ids, vectors), {id: vector}, a DataFrame, a CSV or Parquet
                path, or ids alone; vectors are then learned from co-clicks.
            log: The shop's folder.
            features: Numbers about the visitor that `recommend` will be given.
            settings: Everything else; `features` and the vectors' length are filled in.
            durability: What acknowledged events survive: the end of any process, or power loss.
            learner: Where learning happens: in a thread, in a process, or nowhere, where `learn`
                does it when called.
        """
        if learner not in ("thread", "process", "off"):
            raise ValueError(f"learner must be thread, process or off, got {learner!r}")
        folder = Path(log)
        new = not (folder / FILE).exists()
        if new and items is None:
            raise ValueError(f"items must be given for a new shop: {folder} holds no log")
        table = None if items is None else read_items(items)
        self.folder = folder
        self._name, self._numbers = f"{secrets.token_hex(8)}-", itertools.count(1)  # of pages
        self._log = SqliteLog(folder, durability=durability)
        try:
            self._reader = SqliteReader(folder)
            self._begin(table, features, settings)
            self.books = Books.open(folder, self._reader)
            self._log.watch(self.books.fold)
            self._policies: dict[tuple[str, int], Policy] = {}
            self.keeper = Keeper(self._log, self._reader, self.books, folder, self._policies)
            if table is not None:
                self.put_items(*table)
            self.keeper.start(learner)
        except BaseException:
            self._log.close()
            raise
        self._closed = threading.Event()

    @classmethod
    def open(
        cls,
        log: str | Path,
        *,
        changes: Mapping[str, Any] | None = None,
        durability: Durability = "process",
        learner: LearnerPlace = "thread",
    ) -> Self:
        """Continue a shop, with some settings changed."""
        if not (Path(log) / FILE).exists():
            raise FileNotFoundError(f"{log} holds no log")
        recommender = cls(None, log, durability=durability, learner=learner)
        if changes:
            recommender.change(changes)
        return recommender

    def _begin(self, table: Any, features: int, settings: Settings | None) -> None:
        """The first event of a log: its settings."""
        logged = next(self._reader.of_kind("settings"), None)
        if logged is not None:
            return
        chosen = settings or Settings()
        if features:
            chosen = replace(chosen, features=features)
        if table.vectors is None:
            chosen = replace(chosen, learned_vectors=True)
        else:
            norm = float(np.sqrt((table.vectors.astype(np.float64) ** 2).sum(axis=1).mean()))
            scale = 1 / norm if norm > 0 else 1.0
            chosen = replace(chosen, dim=table.vectors.shape[1], scale=scale)
        body = orjson.dumps(chosen.as_json())
        self._log.append(Entry("settings", "1", body))

    @property
    def log(self) -> SqliteLog:
        """The log."""
        return self._log

    @property
    def settings(self) -> Settings:
        """The settings as they are now."""
        return self.books.settings

    def change(self, changes: Mapping[str, Any]) -> None:
        """Change settings from now on; those that the log is built on cannot change."""
        after = self.settings.changed(changes)
        if after != self.settings:
            id = f"{self._log.head + 1}-{secrets.token_hex(4)}"
            self._log.append(Entry("settings", id, orjson.dumps(after.as_json())))

    # pages

    def recommend(
        self,
        user: str | None = None,
        features: Sequence[float] | Float32 | None = None,
        k: int | None = None,
        *,
        id: str | None = None,
        session: str | None = None,
        among: Sequence[str] | None = None,
        where: Filter | None = None,
        exclude: Sequence[str] = (),
    ) -> Page:
        """A page of `k` items for a visitor, logged before it is returned.

        The same `id` again returns the page that was logged, whatever else has changed. `among`
        limits the page to some items, `where` to those with given attributes, `exclude` leaves
        items out; a page is shorter than `k` where fewer are left.
        """
        entry = self.decision(
            user, features, k, id=id, session=session, among=among, where=where, exclude=exclude
        )
        return self.page(self._log.append(entry)[0], user)

    def decision(
        self,
        user: str | None = None,
        features: Sequence[float] | Float32 | None = None,
        k: int | None = None,
        *,
        id: str | None = None,
        session: str | None = None,
        among: Sequence[str] | None = None,
        where: Filter | None = None,
        exclude: Sequence[str] = (),
    ) -> Entry:
        """The event of `recommend`, not yet logged."""
        books, settings = self.books, self.books.settings
        given = check_features(features, settings.features)
        k = settings.k if k is None else check_count("k", k, MOST_PLACES)
        id = f"{self._name}{next(self._numbers):x}" if id is None else check_id("id", id)
        if user is not None:
            check_id("user", user)
        if session is not None:
            check_id("session", session)
        visitor = user if user is not None else session if session is not None else id
        mask = books.items.eligible(among=among, where=where, exclude=exclude)
        with books.lock:
            now = self._log.now()
            visit = 1 if user is None else books.visitors.session(
                user, now, settings.session_timeout
            )  # fmt: skip
            observation = books.visitors.observe(user, given, now)
            arm, learner, version, cold = books.arms.policy_for(visitor)
        policy = self._policies.get((learner, version), _RANDOM) if version else _RANDOM
        name = session if session is not None else f"{visitor}/{visit}"
        choice = choose(
            policy, observation, books.items, books.nearest, settings,
            k=k, mask=mask, decision=id, visit=name,
        )  # fmt: skip
        ids = books.items.ids
        body: dict[str, Any] = {
            "user": user,
            "session": name,
            "visit": visit,
            "arm": arm,
            "learner": learner,
            "version": version if policy is not _RANDOM else 0,
            "cold": cold,
            "layout": settings.layout,
            "observation": packed(observation),
            "given": given is not None,
            "direction": None if choice.direction is None else packed(choice.direction),
            "items": [ids[row] for row in choice.slate.rows.tolist()],
            "propensities": choice.slate.propensities.tolist(),
            "random": choice.slate.random,
            "eligible": choice.eligible,
        }
        limits = {"among": among, "where": where, "exclude": exclude}
        if mask is not None:
            body["limits"] = {key: value for key, value in limits.items() if value}
        return Entry("decision", id, orjson.dumps(body))

    def page(self, receipt: Receipt, user: str | None) -> Page:
        """The page that the log holds for a decision."""
        event = receipt.event
        body = orjson.loads(event.body)
        if not receipt.new and body["user"] != user:
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

    # feedback

    def feedback(
        self,
        page: str,
        clicks: Sequence[str] = (),
        value: float | None = None,
        *,
        id: str | None = None,
    ) -> bool:
        """Report what became of a page; returns whether that was new.

        May come once, in parts, twice or never, and late: after the window it is logged and not
        learned. Without an `id` the same report twice is one report.
        """
        return self._log.append(self.report(page, clicks, value, id=id))[0].new

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

    # items

    def put_items(
        self,
        ids: Sequence[str],
        vectors: Any = None,
        attributes: Sequence[Mapping[str, Value] | None] | None = None,
    ) -> None:
        """Add items or change them, from the next page on; those that are so already stay."""
        self._log.append(*self.item_changes(ids, vectors, attributes), timeout=300.0)
        self.keeper.wake()

    def item_changes(
        self,
        ids: Sequence[str],
        vectors: Any = None,
        attributes: Sequence[Mapping[str, Value] | None] | None = None,
    ) -> list[Entry]:
        """The events of `put_items`, not yet logged."""
        items, settings = self.books.items, self.settings
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

    def remove_items(self, ids: Sequence[str]) -> None:
        """Take items out of the catalogue, from the next page on."""
        names = [check_id("item id", id) for id in ids]
        self._log.append(Entry("items", None, remove_body(names)))

    # policies and learning

    def promote(self, arm: str, version: int, *, hold: bool = False) -> None:
        """Make a version current; with `hold`, later candidates wait for their promotion."""
        self._release(arm, version, {"action": "promote", "hold": hold})

    def rollback(self, arm: str, version: int | None = None) -> None:
        """Go back to a version, the last stable one if none is named; candidates then wait."""
        if version is None:
            known = self.books.arms.versions.get(arm)
            version = known.stable if known is not None else 0
        self._release(arm, version, {"action": "rollback"})

    def _release(self, arm: str, version: int, body: dict[str, Any]) -> None:
        known = self.books.arms.versions.get(arm)
        if known is None:
            raise ValueError(f"arm {arm!r} has no policies")
        if version and version not in known.about:
            raise ValueError(f"arm {arm!r} has no version {version}")
        if version and body["action"] == "promote" and not known.about[version]["sound"]:
            raise ValueError(f"version {version} of {arm!r} failed its checks")
        full = {"arm": arm, "version": version, "by": "operator", **body}
        self._log.append(Entry("release", None, orjson.dumps(full)))
        self.keeper.wake()

    def learn(self) -> int:
        """Learn from everything in the log, here and now; returns the pages learned from so far."""
        return self.keeper.learn()

    def close(self) -> None:
        """Write everything that is pending and stop."""
        if not self._closed.is_set():
            self._closed.set()
            self.keeper.stop()
            self._log.close()
            self.books.save(self.folder)
            self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


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
    if not np.isfinite(array).all():
        raise ValueError("features must be finite")
    return array


def check_count(name: str, value: Any, most: int) -> int:
    """A whole number from 1 to `most`."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise ValueError(f"{name} must be a whole number from 1 to {most}, got {value!r}")
    return value


def _digest(text: str) -> str:
    import hashlib

    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
