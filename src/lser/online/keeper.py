"""The housekeeping behind a recommender: ticks, policies, indexes, evidence, retention, learner."""

import contextlib
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import orjson

from lser.online.books import Books
from lser.online.items import Items
from lser.online.learner_loop import learn_until
from lser.online.learning import Learning
from lser.online.log import Entry, Event, Log, LogRefusedError, Reader
from lser.online.policies import Policy, forget_policies, load_policy
from lser.online.store import Lease, Store

BEAT = 0.2  # seconds between looks
RESTART = 2.0  # seconds at least between two starts of a learner
EVIDENCE_EVERY = 1.0
STATUS_EVERY = 0.5
SAVE_EVERY = 300.0
TRIM_EVERY = 600.0
FEWEST = 4  # events less, below which items are not written anew
TRIMMED = ("decision", "feedback", "tick")
logger = logging.getLogger("lser")


class Keeper:
    """One thread that does what serving must not wait for."""

    def __init__(
        self,
        log: Log,
        reader: Reader,
        books: Books,
        store: Store,
        policies: dict[tuple[str, int], Policy],
    ) -> None:
        """Keep `policies` (learner and version -> policy) and the rest of a shop up to date."""
        self._log, self._reader, self._books, self._store = log, reader, books, store
        self._policies = policies
        self._wake, self._stop = threading.Event(), threading.Event()
        self._threads: list[threading.Thread] = []
        self._loaded = -1
        self._open = self._begun = -1e9  # when pages were last open, and a learner started
        self._due = {"save": time.monotonic() + SAVE_EVERY}
        self._learning: Learning | None = None
        self._lease: Lease | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self.restarts = 0
        self.learner: dict[str, Any] = {}  # what the learner last said of itself
        log.watch(self._watch)

    def start(self, learner: str) -> None:
        """Begin, with the learner in a thread or a process, or without one."""
        self._place = learner
        self._beat()
        self._spawn(self._run)
        if learner == "thread":
            self._spawn(self._learn_on)

    def _spawn(self, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, daemon=True)
        self._threads.append(thread)
        thread.start()

    def wake(self) -> None:
        """Look now."""
        self._wake.set()

    def _watch(self, events: list[Event]) -> None:
        if any(event.kind in ("policy", "release", "handover", "settings") for event in events):
            self._wake.set()

    def stop(self) -> None:
        """Stop the threads and the process; their state is saved."""
        self._stop.set()
        self._wake.set()
        if self._process is not None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=60)
            self._process.kill()
            self._process.wait()
        for thread in self._threads:
            thread.join()
        with contextlib.suppress(LogRefusedError):
            self._store.take_in(self._log)
        if self._learning is not None:
            self._learning.save()
            self._learning = None
        if self._lease is not None:
            self._lease.close()

    def learn(self) -> int:
        """Learn from everything in the log."""
        if self._place != "off":
            raise ValueError("learn() is for a recommender with learner='off'")
        if self._lease is None:
            self._lease = self._store.lease(self._log)
        if self._lease is None:
            raise ValueError(f"{self._store.name} has a learner already")
        if self._learning is None:
            self._learning = Learning(self._lease.shelf, self._reader, self._lease.outbox)
        self._log.append(Entry("tick", None, b"{}"))
        while self._learning.step() or self._learning.cursor < self._log.head:
            pass
        self._learning.publish()
        self._log.append(Entry("tick", None, b"{}"))  # brings what was published
        self._load_policies()
        return self._learning.pages

    def _learn_on(self) -> None:
        """The learner's thread: a learner, and another one should it fail."""
        while not self._stop.is_set():
            try:
                learn_until(self._store, self._stop.is_set, self._log)
            except Exception:
                logger.exception("the learner failed: starting it again")
                self.restarts += 1
                self._stop.wait(RESTART)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._wake.wait(BEAT)
            self._wake.clear()
            try:
                self._beat()
            except (LogRefusedError, OSError) as error:
                logger.warning("housekeeping waits: %s", error)
            except Exception:
                logger.exception("housekeeping failed")

    def _beat(self) -> None:
        self._store.take_in(self._log)
        if self._books.changes != self._loaded:
            self._load_policies()
        if self._books.nearest.due:
            self._books.nearest.rebuild()
        if self._place == "process":
            self._tend()
        self._tick()
        if self._passed("status", STATUS_EVERY):
            self.learner = self._store.shelf.status()
        if self._passed("evidence", EVIDENCE_EVERY):
            self._judge()
        if self._passed("save", SAVE_EVERY):
            self._books.save(self._store.shelf)
        if self._passed("trim", TRIM_EVERY):
            self.trim()

    def _passed(self, what: str, seconds: float) -> bool:
        """Whether it is time again for something that is done every so many seconds."""
        now = time.monotonic()
        if now < self._due.get(what, 0.0):
            return False
        self._due[what] = now + seconds
        return True

    def _tick(self) -> None:
        """Move the log's time while pages are open, and until what they taught is published."""
        settings, now = self._books.settings, time.monotonic()
        if len(self._books.joins):
            self._open = now
        busy = now - self._open <= settings.publish_every + 1.0
        if busy and self._passed("tick", min(1.0, settings.window / 10)):
            self._log.append(Entry("tick", None, b"{}"))

    def _judge(self) -> None:
        """Log the hand-overs and rollbacks that the evidence asks for, once for all servers."""
        with self._books.lock:
            due = self._books.arms.due()
        for kind, id, body in due:
            logger.warning("%s: %s", kind, orjson.dumps(body).decode())
            self._log.append(Entry(kind, id, orjson.dumps(body)))

    def _load_policies(self) -> None:
        """Load what serving may need, before anything needs it."""
        changes = self._books.changes
        with self._books.lock:
            wanted = {arm: v.serving for arm, v in self._books.arms.versions.items()}
        failed = False
        for arm, numbers in wanted.items():
            for version in numbers - {0}:
                if (arm, version) not in self._policies:
                    try:
                        self._policies[arm, version] = load_policy(self._store.shelf, arm, version)
                    except (OSError, ValueError) as error:
                        failed = True
                        logger.warning("policy %s-%s cannot be used: %s", arm, version, error)
            for key in [key for key in self._policies if key[0] == arm]:
                if key[1] not in numbers and key[1] < max(numbers) - 3:
                    del self._policies[key]
            forget_policies(self._store.shelf, arm, numbers)
        if not failed:
            self._loaded = changes

    def _tend(self) -> None:
        """Start the learner's process, or start it again."""
        now = time.monotonic()
        if self._process is None or self._process.poll() is not None:
            if now - self._begun < RESTART:
                return
            self._begun = now
            if self._process is not None:
                self.restarts += 1
                logger.warning("the learner ended (%s): starting it again", self._process.poll())
            command = [sys.executable, "-m", "lser.online.learner_process"]
            self._process = subprocess.Popen([*command, self._store.address, str(os.getpid())])

    def trim(self) -> int:
        """Delete what retention lets go of, never what the learner has yet to see."""
        settings = self._books.settings
        edge = self._log.head - settings.retention_events
        oldest = self._log.now() - settings.retention_days * 86_400
        edge = max(edge, self._reader.first_after(oldest))
        saved = int(self._store.shelf.status().get("snapshot", 0))  # what the learner has kept
        edge = min(edge, saved, self._books.cursor)
        if edge <= 0:
            return 0
        deleted = self._log.trim(edge, TRIMMED)
        self._compact(edge)
        return deleted

    def _compact(self, edge: int) -> None:
        """Let few events say what the catalogue was where the log's pages begin.

        Nothing before `edge` is folded any more but items, so what they passed through is not.
        """
        changes = list(self._reader.of_kind("items", up_to=edge - 1))
        if not changes:
            return
        items = Items(self._books.settings.dim)
        for event in changes:
            items.apply(orjson.loads(event.body))
        bodies = list(items.bodies())
        if len(changes) < 2 * len(bodies) + FEWEST:
            return
        seqs = [event.seq for event in changes]
        self._log.rewrite(
            dict(zip(seqs[-len(bodies) :], bodies, strict=True)), seqs[: -len(bodies)]
        )
