"""The recommender: pages for visitors, feedback for pages, and a log between them."""

import secrets
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import orjson

from lser.online import observation, pages
from lser.online.books import Books
from lser.online.desk import Desk, Page, Request
from lser.online.group_log import Durability
from lser.online.item_files import check_id, read_items
from lser.online.items import Filter, Value, remove_body
from lser.online.keeper import Keeper
from lser.online.log import Entry, Log
from lser.online.policies import Policy
from lser.online.settings import Settings
from lser.online.store import Store, open_store
from lser.types import Float32

LearnerPlace = Literal["thread", "process", "off"]


class Recommender:
    """Recommends from a catalogue, logs what it does, and learns from what comes back.

    Safe to use from many threads. The log's folder holds everything; `open` continues with it.
    """

    def __init__(
        self,
        items: Any = None,
        log: str | Path | Store = "shop",
        *,
        features: int = 0,
        settings: Settings | None = None,
        durability: Durability = "process",
        learner: LearnerPlace = "thread",
    ) -> None:
        """Start a shop, or continue the one in `log` and add `items` to its catalogue.

        Args:
            items: An array (M, d), (ids, vectors), {id: vector}, a DataFrame, a CSV or Parquet
                path, or ids alone; vectors are then learned from co-clicks.
            log: The shop's folder, or the address of a PostgreSQL database (postgresql://...),
                which several recommenders may share.
            features: Numbers about the visitor that `recommend` will be given.
            settings: Everything else; `features` and the vectors' length are filled in.
            durability: What acknowledged events survive: the end of any process, or power loss.
            learner: Where learning happens: in a thread, in a process, or nowhere, where `learn`
                does it when called.
        """
        if learner not in ("thread", "process", "off"):
            raise ValueError(f"learner must be thread, process or off, got {learner!r}")
        self.store = open_store(log)
        if items is None and not self.store.exists():
            raise ValueError(f"items must be given for a new shop: {self.store.name} holds no log")
        table = None if items is None else read_items(items)
        self._log = self.store.log(durability)
        try:
            self._reader = self.store.reader()
            self._begin(table, features, settings)
            self.books = Books.open(self.store.shelf, self._reader)
            self._log.watch(self.books.fold)
            self._policies: dict[tuple[str, int], Policy] = {}
            self.desk = Desk(self._log, self.books, self._policies)
            self.keeper = Keeper(self._log, self._reader, self.books, self.store, self._policies)
            self._log.follow(self.books.cursor)
            if table is not None:
                self.put_items(*table)
            pages.warm_up()
            observation.warm_up()
            self.keeper.start(learner)
        except BaseException:
            self._log.close()
            self.store.close()
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
        store = open_store(log)
        if not store.exists():
            raise FileNotFoundError(f"{store.name} holds no log")
        recommender = cls(None, store, durability=durability, learner=learner)
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
    def log(self) -> Log:
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
        request = Request(user, features, k, id, session, among, where, exclude)
        asked = self.desk.decision(request)
        return self.desk.page(self._log.append(asked.entry)[0], asked)

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
        return self._log.append(self.desk.report(page, clicks, value, id=id))[0].new

    # items

    def put_items(
        self,
        ids: Sequence[str],
        vectors: Any = None,
        attributes: Sequence[Mapping[str, Value] | None] | None = None,
    ) -> None:
        """Add items or change them, from the next page on; those that are so already stay."""
        self._log.append(*self.desk.item_changes(ids, vectors, attributes), timeout=300.0)
        self.keeper.wake()

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
            self.books.save(self.store.shelf)
            self._reader.close()
            self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
