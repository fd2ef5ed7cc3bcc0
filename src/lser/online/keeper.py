"""The housekeeping behind a recommender: ticks, policies, indexes, evidence, retention, learner."""

import contextlib
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import orjson

from lser.online import outbox
from lser.online.books import Books
from lser.online.learning import STATUS, Learning
from lser.online.log import Entry, Event, Log, LogRefusedError, Reader
from lser.online.outbox import DirectOutbox
from lser.online.policies import Policy, forget_policies, load_policy
from lser.online.sqlite_reader import SqliteReader

BEAT = 0.2  # seconds between looks
RESTART = 2.0  # seconds at least between two starts of a learner
EVIDENCE_EVERY = 1.0
SAVE_EVERY = 300.0
TRIM_EVERY = 600.0
TRIMMED = ("decision", "feedback", "tick")
logger = logging.getLogger("lser")


class Keeper:
    """One thread that does what serving must not wait for."""

    def __init__(
        self,
        log: Log,
        reader: Reader,
        books: Books,
        folder: Path,
        policies: dict[tuple[str, int], Policy],
    ) -> None:
        """Keep `policies` (learner and version -> policy) and the rest of a shop up to date."""
        self._log, self._reader, self._books, self._folder = log, reader, books, folder
        self._policies = policies
        self._wake, self._stop = threading.Event(), threading.Event()
        self._threads: list[threading.Thread] = []
        self._loaded = -1
        self._times = {"evidence": 0.0, "save": time.monotonic(), "trim": 0.0, "tick": 0.0}
        self._times["open"] = self._times["learner"] = -1e9
        self._learning: Learning | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self.restarts = 0
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
            self.take_in()
        if self._learning is not None:
            self._learning.save()
            self._learning = None

    def learn(self) -> int:
        """Learn from everything in the log."""
        if self._place != "off":
            raise ValueError("learn() is for a recommender with learner='off'")
        if self._learning is None:
            self._learning = Learning(
                self._folder, self._reader, DirectOutbox(self._log, self._folder)
            )
        self._log.append(Entry("tick", None, b"{}"))
        while self._learning.step() or self._learning.cursor < self._log.head:
            pass
        self._learning.publish()
        self._load_policies()
        return self._learning.pages

    def _learn_on(self) -> None:
        """The learner's thread: a learner, and another one should it fail."""
        while not self._stop.is_set():
            try:
                self._learn_here()
            except Exception:
                logger.exception("the learner failed: starting it again")
                self.restarts += 1
                self._stop.wait(RESTART)

    def _learn_here(self) -> None:
        reader = SqliteReader(self._folder)
        try:
            learning = Learning(self._folder, reader, DirectOutbox(self._log, self._folder))
            while not self._stop.is_set():
                worked = learning.step(50)
                learning.report()
                if not worked:
                    self._stop.wait(BEAT / 4)
            learning.save()  # not after a failure: what is half folded is no function of the log
        finally:
            reader.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._wake.wait(BEAT)
            self._wake.clear()
            try:
                self._beat()
            except LogRefusedError as error:
                logger.warning("housekeeping waits: %s", error)
            except Exception:
                logger.exception("housekeeping failed")

    def _beat(self) -> None:
        now = time.monotonic()
        self.take_in()
        if self._books.changes != self._loaded:
            self._load_policies()
        if self._books.nearest.due:
            self._books.nearest.rebuild()
        if self._place == "process":
            self._tend()
        self._tick(now)
        if now - self._times["evidence"] >= EVIDENCE_EVERY:
            self._times["evidence"] = now
            self._judge()
        if now - self._times["save"] >= SAVE_EVERY:
            self._times["save"] = now
            self._books.save(self._folder)
        if now - self._times["trim"] >= TRIM_EVERY:
            self._times["trim"] = now
            self.trim()

    def _tick(self, now: float) -> None:
        """Move the log's time while pages are open, and until what they taught is published."""
        settings = self._books.settings
        if len(self._books.joins):
            self._times["open"] = now
        busy = now - self._times["open"] <= settings.publish_every + 1.0
        if busy and now - self._times["tick"] >= min(1.0, settings.window / 10):
            self._times["tick"] = now
            self._log.append(Entry("tick", None, b"{}"))

    def take_in(self) -> None:
        """Append what a learner in another process has left."""
        found = outbox.waiting(self._folder)
        if found:
            self._log.append(*(entry for _, entry in found))
            for path, _ in found:
                path.unlink(missing_ok=True)

    def _judge(self) -> None:
        """Log the hand-overs and rollbacks that the evidence asks for."""
        with self._books.lock:
            due = self._books.arms.due()
        for kind, body in due:
            logger.warning("%s: %s", kind, orjson.dumps(body).decode())
            self._log.append(Entry(kind, None, orjson.dumps(body)))

    def _load_policies(self) -> None:
        """Load what serving may need, before anything needs it."""
        changes = self._books.changes
        with self._books.lock:
            wanted = {arm: {v.current, v.stable} for arm, v in self._books.arms.versions.items()}
        failed = False
        for arm, numbers in wanted.items():
            for version in numbers - {0}:
                if (arm, version) not in self._policies:
                    try:
                        self._policies[arm, version] = load_policy(self._folder, arm, version)
                    except (OSError, ValueError) as error:
                        failed = True
                        logger.warning("policy %s-%s cannot be used: %s", arm, version, error)
            for key in [key for key in self._policies if key[0] == arm]:
                if key[1] not in numbers and key[1] < max(numbers) - 3:
                    del self._policies[key]
            forget_policies(self._folder, arm, numbers)
        if not failed:
            self._loaded = changes

    def _tend(self) -> None:
        """Start the learner's process, or start it again."""
        now = time.monotonic()
        if self._process is None or self._process.poll() is not None:
            if now - self._times["learner"] < RESTART:
                return
            self._times["learner"] = now
            if self._process is not None:
                self.restarts += 1
                logger.warning("the learner ended (%s): starting it again", self._process.poll())
            command = [sys.executable, "-m", "lser.online.learner_process"]
            self._process = subprocess.Popen([*command, str(self._folder), str(os.getpid())])

    def trim(self) -> int:
        """Delete what retention lets go of, never what the learner has yet to see."""
        settings = self._books.settings
        edge = self._log.head - settings.retention_events
        oldest = self._log.now() - settings.retention_days * 86_400
        edge = max(edge, self._reader.first_after(oldest))
        edge = min(edge, self._snapshot(), self._books.cursor)
        return self._log.trim(edge, TRIMMED) if edge > 0 else 0

    def _snapshot(self) -> int:
        """Up to where the learner has saved what it learned."""
        try:
            return int(orjson.loads((self._folder / STATUS).read_bytes())["snapshot"])
        except (OSError, KeyError, ValueError):
            return 0
