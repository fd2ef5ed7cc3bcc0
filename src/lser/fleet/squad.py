"""Seats that go in lockstep: their crews, the board they share, and the stack of their learners.

While the device learns from the batches of one vector step, the crews take the step, store it and
draw the batches of the next, and say what they see before they draw, so that the choice of actions
is queued by then: nothing that a run does depends on whether it is alone.
"""

import logging
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from math import ceil
from typing import Any, NamedTuple

import numpy as np
import torch

from lser.agents.stack import make_stack, stack_shape
from lser.agents.team import Stack, Team
from lser.experiments.experiment import from_json
from lser.experiments.study import Job
from lser.fleet.awaited import All, Awaited, Course, First
from lser.fleet.board import Board, Shape
from lser.fleet.links import Link, LocalLink, ProcessLink
from lser.fleet.messages import Act, Close, Give, Hear, Joined, Prepare, Ready, Save, States
from lser.types import Bool, Float32

log = logging.getLogger("lser")

# what the time of a squad goes to: choosing actions (and the updates before), launching updates,
# and waiting for errors, for memories that wait for them, and for the crews' other work
PARTS = ("act", "launch", "errors", "waiting memories", "crews")


class Muster(NamedTuple):
    """Some of a fleet's jobs, and who carries them out."""

    jobs: Sequence[Job]
    workers: int = 0  # processes for users and memories; 0: this one
    urgent: bool = False  # its updates go first on the device: it cannot go on before they ended


class Reached(NamedTuple):
    """How far runs are, all together."""

    running: int
    steps: int
    sessions: int


class Squad:
    """Jobs of equal architecture and pace, side by side until each has had its sessions."""

    def __init__(self, muster: Muster, device: str, name: str) -> None:
        """Let crews build the jobs' runs; `name` is the device's in words."""
        self._jobs, self._device, self._urgent = muster.jobs, device, muster.urgent
        self._shared = muster.workers > 0
        crews = min(muster.workers, len(muster.jobs))
        dealt = [muster.jobs[place::crews] for place in range(crews)] or [muster.jobs]
        kind = ProcessLink if self._shared else LocalLink
        self._links: list[Link] = [kind(some, name) for some in dealt]
        self._joined: list[list[Joined | None]] = []
        self._ready = [Ready()] * len(self._links)
        self._alive = [True] * len(self._links)
        self._drawn = [False] * len(self._links)  # whose Drawn came before it was waited for
        self.seats = 0
        self.times = dict.fromkeys(PARTS, 0.0)  # seconds

    def join(self) -> list[Joined]:
        """Wait for the crews; what has to be known of every seat that can be taken."""
        self._joined = [self._join(place) for place in range(len(self._links))]
        return [seat for seats in self._joined for seat in seats if seat is not None]

    def _join(self, place: int) -> list[Joined | None]:
        try:
            return self._links[place].join()
        except EOFError:
            log.error("a crew of the fleet died before its runs began")
            self._alive[place] = False
            return []

    def sit(self) -> None:
        """Stack the learners of all who joined, and give their seats places on a board."""
        everybody = [seat for seats in self._joined for seat in seats if seat is not None]
        experiment = from_json(dict(self._jobs[0].experiment))
        first, rows, users = everybody[0], experiment.batch_size, experiment.users
        team = Team(first.learner_type, first.observation_dim, [s.member for s in everybody])
        batch = stack_shape(team, rows, self._device)
        turns = ceil(users * experiment.updates_per_step)
        shape = Shape(
            *(len(everybody), users, batch.observations, batch.actions, rows),
            *(first.learner_type.normals_to_act, batch.floats, turns),
        )
        self.seats = len(everybody)
        self.board = Board(shape, shared=self._shared)
        self.board.values[:] = np.nan
        buffers = [torch.from_numpy(b[: batch.floats]) for b in self.board.batches]
        self.stack: Stack = make_stack(team, rows, self._device, buffers, urgent=self._urgent)
        numbers: Iterator[int] = iter(range(len(everybody)))
        self._waits = np.zeros((len(self._links), len(everybody)), np.bool_)  # of each link
        self._member = np.zeros((len(self._links), len(everybody)), np.bool_)
        for place, (link, seats) in enumerate(zip(self._links, self._joined, strict=True)):
            slots = [None if seat is None else next(numbers) for seat in seats]
            for slot, seat in zip(slots, seats, strict=True):
                if slot is not None and seat is not None:
                    self.stack.load(slot, seat.state)
                    self._waits[place, slot] = seat.waits
                    self._member[place, slot] = True
            link.sit(slots, self.board, batch)
        self._joined = []  # with the learners' states

    # --- the course of a squad --------------------------------------------------------------

    def course(self, stop: Callable[[], bool], checkpoint_seconds: float) -> Course:
        """Go to the end of every run, or until `stop`, with checkpoints on the way."""
        saved, step = time.monotonic(), 0
        try:
            yield None
            yield from self._prepare()
            while self.board.running.any():
                stopping = stop()
                hold = stopping or time.monotonic() - saved > checkpoint_seconds
                yield from self._vector_step(step, hold=hold)
                step += 1
                if hold:
                    self._checkpoint()
                    saved = time.monotonic()
                    if stopping:
                        break
                    yield from self._prepare()
        finally:
            self._finish()

    def _prepare(self) -> Course:
        for link in self._links:
            link.send(Prepare())
        replies: list[Ready | None] = [None] * len(self._links)
        yield from self._collect(replies)
        yield from self._get_ready(replies)

    def _vector_step(self, step: int, *, hold: bool) -> Course:
        """Choose actions, let the crews take them, and learn from what they drew before."""
        board = self.board
        if self.stack.looked:
            with self._timed("act"):
                yield self.stack
                self.stack.found()  # a squad by itself was not kept waiting
            self._note_values()
        wanted = [self._wanted(ready) for ready in self._ready]  # before anything is learned
        due, running = board.due.copy(), board.running.astype(np.bool_)
        updates = [running & (due > turn) for turn in range(int(due.max(initial=0)))]
        answer = self.stack.ask(
            board.observations, board.normals[0] if len(board.normals) else None
        )
        in_turns = self._waits.any() or not self.stack.beside
        # a device that is busy when batches are drawn gets its updates behind the actors, so that
        # it is never idle; crews that keep an idle one waiting get their actions first
        queued = not in_turns and (yield from self._drawn_before(answer))
        if queued:
            yield from self._launch(step, updates)
        with self._timed("act"):
            yield answer
            board.actions[:] = answer.take()
        replies: list[Ready | None] = [None] * len(self._links)
        for place, link in enumerate(self._links):
            if self._alive[place]:
                link.send(Act(hold, *wanted[place]))
        self._ready = [Ready()] * len(self._links)  # nothing is wanted twice
        if in_turns:
            yield from self._learn_in_turns(step, updates, replies)
        elif not queued:
            yield from self._launch(step, updates)
        with self._timed("crews"):
            yield from self._collect(replies)
        yield from self._get_ready(replies)
        if hold:
            yield from self._draws()

    def _drawn_before(self, answer: Awaited) -> Generator[Awaited, None, bool]:
        """Wait until batches are drawn or the `answer` is there; whether the device is busy yet."""
        with self._timed("act"):
            drawn = self._all([at for at, there in enumerate(self._drawn) if not there])
            while not (answer.ready() or drawn.ready()):
                yield First([answer, drawn])
        return not answer.ready() and not self.stack.ready()

    def _draws(self) -> Course:
        """Wait for the batches that crews draw after they are ready."""
        missing = [at for at, there in enumerate(self._drawn) if not there]
        with self._timed("crews"):
            yield self._all(missing)
            for place in missing:
                self._receive(place)
        self._drawn = [False] * len(self._links)

    def _launch(self, step: int, updates: Sequence[Bool]) -> Course:
        """All updates of a step, of which nobody waits for errors, once their batches are drawn."""
        yield from self._draws()
        if updates:
            with self._timed("launch"):
                self.stack.launch(updates, self.board.buffer(step, 0), errors=False)

    def _learn_in_turns(
        self, step: int, updates: Sequence[Bool], replies: list[Ready | None]
    ) -> Course:
        """Update by update, as memories that wait for errors need it."""
        yield from self._draws()
        for turn, active in enumerate(updates):
            hearing = np.flatnonzero((self._waits & active).any(1)).tolist()
            with self._timed("launch"):
                self.stack.launch([active], self.board.buffer(step, turn), errors=bool(hearing))
            if hearing:
                with self._timed("errors"):
                    yield self.stack
                    self.board.errors[:] = self.stack.found().errors
                with self._timed("waiting memories"):
                    yield from self._hear(turn, hearing, replies)
            else:
                yield None

    @contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.times[part] += time.perf_counter() - began

    def _hear(self, turn: int, places: list[int], replies: list[Ready | None]) -> Course:
        """Tell those crews of the errors on the board, and wait for the batches they draw then."""
        for place in places:
            self._links[place].send(Hear(turn))
        yield self._all(places)
        for place in places:
            reply = self._receive(place)
            while not isinstance(reply, Hear) and self._alive[place]:
                # of the step itself: all that waited there have failed
                if isinstance(reply, Ready):
                    replies[place] = reply
                else:
                    self._drawn[place] = True
                reply = yield from self._reply(place)

    def _collect(self, replies: list[Ready | None]) -> Course:
        """Wait for the replies that are missing, and fill them in."""
        missing = [place for place, reply in enumerate(replies) if reply is None]
        yield self._all(missing)
        for place in missing:
            replies[place] = self._receive(place)

    def _wanted(self, ready: Ready) -> tuple[dict[int, Float32], States]:
        actors = {slot: self.stack.actor(slot) for slot in ready.actors}
        return actors, {slot: self.stack.state(slot) for slot in ready.ended}

    def _get_ready(self, replies: Sequence[Ready | None]) -> Course:
        """Give actors to evaluations that cannot wait, until all crews have prepared the step."""
        ready = []
        for place, reply in enumerate(replies):
            while reply is not None and reply.blocked:
                self.stack.found()
                self._note_values()
                self._links[place].send(Give(self._wanted(reply)[0]))
                reply = yield from self._reply(place)
            ready.append(reply or Ready())
        self._ready = ready

    def _note_values(self) -> None:
        """Put what critics said of late on the board; the crews clear it."""
        values = self.stack.take_values()
        looked = ~np.isnan(values[:, 0])
        self.board.values[looked] = values[looked]

    def _checkpoint(self) -> None:
        self.stack.found()
        self._note_values()
        for place, link in enumerate(self._links):
            slots = np.flatnonzero(self._member[place] & (self.board.running > 0))
            link.send(Save({int(slot): self.stack.state(int(slot)) for slot in slots}))
        for place in range(len(self._links)):
            self._receive(place)

    def _finish(self) -> None:
        self.stack.found()
        self._note_values()
        for place, link in enumerate(self._links):
            link.send(Close(self._wanted(self._ready[place])[1]))
        for place in range(len(self._links)):
            while self._alive[place] and not isinstance(self._receive(place), Close):
                pass
        self.end()
        self.stack.close()
        del self.stack
        self._reached = self.reached
        self.board.close()
        del self.board

    @property
    def reached(self) -> "Reached":
        """How far the runs are."""
        if not hasattr(self, "board"):
            return self._reached
        board = self.board
        return Reached(int(board.running.sum()), int(board.steps.sum()), int(board.sessions.sum()))

    def end(self) -> None:
        """Wait for the crews' end."""
        for link in self._links:
            link.end()

    def _all(self, places: Sequence[int]) -> All:
        return All([self._links[place] for place in places if self._alive[place]])

    def _reply(self, place: int) -> Generator[Awaited, None, Any]:
        """A crew's next reply, once it is there."""
        if self._alive[place]:
            yield self._links[place]
        return self._receive(place)

    def _receive(self, place: int) -> Any:
        """A crew's next reply; the seats of one that is gone go with it."""
        if self._alive[place]:
            try:
                return self._links[place].receive()
            except EOFError:
                log.error("a crew of the fleet died; its runs end here")
                self._alive[place] = False
                self.board.running[self._member[place]] = 0
                self.board.due[self._member[place]] = 0
        return Ready()
