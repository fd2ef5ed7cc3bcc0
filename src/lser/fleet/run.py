"""A fleet: runs in lockstep, each with its own users and memory, all learning at once.

One process has the stacked learners; crews of seats have the rest (`crew.py`). While the device
learns from the batches of one vector step, the crews take the step, store it and draw the batches
of the next: nothing that a run does depends on whether it is alone.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import ceil, inf
from typing import Any

import numpy as np
import torch

from lser.agents.stack import make_stack
from lser.agents.team import Stack, Team
from lser.experiments.experiment import from_json
from lser.experiments.study import Job
from lser.fleet.board import Board, Shape
from lser.fleet.links import Link, LocalLink, ProcessLink
from lser.fleet.messages import Act, Close, Give, Hear, Joined, Prepare, Ready, Save, States
from lser.fleet.seat import waits_for_errors
from lser.types import Float32

log = logging.getLogger("lser")


class Fleet:
    """Jobs of equal architecture and pace, side by side until each has had its sessions."""

    def __init__(
        self,
        jobs: Sequence[Job],
        *,
        device: str = "cuda",
        workers: int = 0,
        checkpoint_seconds: float = inf,
    ) -> None:
        """Build the jobs' runs in `workers` processes, or in this one, and stack their learners."""
        name = device_name(device)
        # memories that wait for TD errors make others wait: no crew should have many of them
        jobs = sorted(jobs, key=lambda job: not waits_for_errors(from_json(dict(job.experiment))))
        crews = [list(jobs[place::workers]) for place in range(min(workers, len(jobs)))]
        kind = ProcessLink if workers else LocalLink
        self._links: list[Link] = [kind(some, name) for some in (crews if workers else [jobs])]
        self._checkpoint_seconds = checkpoint_seconds
        joined = [link.join() for link in self._links]
        everybody = [seat for seats in joined for seat in seats if seat is not None]
        if len({seat.kind for seat in everybody}) > 1:
            self._end()
            raise ValueError("runs of a fleet must have equal architectures and pace")
        self.seats = len(everybody)
        # seconds: choosing actions (and the updates before), launching, waiting for others
        parts = ("act", "launch", "errors", "waiting memories", "crews")
        self.times = dict.fromkeys(parts, 0.0)
        self._asked = sum(from_json(dict(job.experiment)).sessions for job in jobs)
        if everybody:
            self._seat(jobs, joined, everybody, device, shared=workers > 0)

    def _seat(
        self,
        jobs: Sequence[Job],
        joined: list[list[Joined | None]],
        everybody: list[Joined],
        device: str,
        *,
        shared: bool,
    ) -> None:
        experiment = from_json(dict(jobs[0].experiment))
        first, rows, users = everybody[0], experiment.batch_size, experiment.users
        team = Team(first.learner_type, first.observation_dim, [s.member for s in everybody])
        batch = team.batch_shape(rows)
        turns = ceil(users * experiment.updates_per_step)
        shape = Shape(
            *(len(everybody), users, batch.observations, batch.actions, rows),
            *(first.learner_type.normals_to_act, batch.floats, turns),
        )
        self.board = Board(shape, shared=shared)
        self.board.values[:] = np.nan
        buffers = [torch.from_numpy(b[: batch.floats]) for b in self.board.batches]
        self.stack: Stack = make_stack(team, rows, device, buffers)
        numbers: Iterator[int] = iter(range(len(everybody)))
        self._waits = np.zeros((len(joined), len(everybody)), np.bool_)  # of each link
        self._member = np.zeros((len(joined), len(everybody)), np.bool_)
        for place, (link, seats) in enumerate(zip(self._links, joined, strict=True)):
            slots = [None if seat is None else next(numbers) for seat in seats]
            for slot, seat in zip(slots, seats, strict=True):
                if slot is not None and seat is not None:
                    self.stack.load(slot, seat.state)
                    self._waits[place, slot] = seat.waits
                    self._member[place, slot] = True
            link.sit(slots, self.board, batch)
        self._alive = [True] * len(self._links)

    # --- the course of a fleet --------------------------------------------------------------

    def go(self, stop: Callable[[], bool] = lambda: False) -> bool:
        """Run to the end of every run, or until `stop`, with checkpoints; whether all ended."""
        if not self.seats:
            self._end()
            return False
        saved = said = time.monotonic()
        began = time.perf_counter(), int(self.board.steps.sum())
        step = 0
        self._ready = self._all(Prepare())
        try:
            while self.board.running.any():
                stopping = stop()
                now = time.monotonic()
                hold = stopping or now - saved > self._checkpoint_seconds
                self._vector_step(step, hold=hold)
                step += 1
                if hold:
                    self._checkpoint()
                    saved = time.monotonic()
                    if stopping:
                        break
                    self._ready = self._all(Prepare())
                if now - said > 10:
                    said = now
                    self._say(*began)
            return not self.board.running.any()
        finally:
            self._finish()

    def _vector_step(self, step: int, *, hold: bool) -> None:
        """Choose actions, let the crews take them, and learn from what they drew before."""
        board = self.board
        normals = board.normals[0] if len(board.normals) else None
        with self._timed("act"):
            board.actions[:] = self.stack.choose(board.observations, normals)
            self._note_values()  # the actions are there, so are they
        due, running = board.due.copy(), board.running.astype(np.bool_)
        replies: list[Ready | None] = [None] * len(self._links)
        for place, link in enumerate(self._links):
            if self._alive[place]:
                link.send(Act(hold, *self._wanted(self._ready[place])))
        for turn in range(int(due.max(initial=0))):
            active = running & (due > turn)
            with self._timed("launch"):
                self.stack.launch(active, board.buffer(step, turn))
            hearing = np.flatnonzero((self._waits & active).any(1)).tolist()
            if hearing:
                with self._timed("errors"):
                    board.errors[:] = self.stack.found().errors
                with self._timed("waiting memories"):
                    self._hear(turn, hearing, replies)
        with self._timed("crews"):
            for place in range(len(self._links)):
                if replies[place] is None:
                    replies[place] = self._receive(place)
        self._ready = [self._unblocked(place, reply) for place, reply in enumerate(replies)]

    @contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.times[part] += time.perf_counter() - began

    def _hear(self, turn: int, places: list[int], replies: list[Ready | None]) -> None:
        """Tell those crews of the errors on the board, and wait for the batches they draw then."""
        for place in places:
            self._links[place].send(Hear(turn))
        for place in places:
            reply = self._receive(place)
            while isinstance(reply, Ready) and self._alive[place]:
                replies[place] = reply  # of the step itself: all that waited there have failed
                reply = self._receive(place)

    def _wanted(self, ready: Ready) -> tuple[dict[int, Float32], States]:
        actors = {slot: self.stack.actor(slot) for slot in ready.actors}
        return actors, {slot: self.stack.state(slot) for slot in ready.ended}

    def _unblocked(self, place: int, reply: Ready | None) -> Ready:
        if reply is None:
            return Ready()
        while reply.blocked:
            self.stack.found()
            self._note_values()
            self._links[place].send(Give(self._wanted(reply)[0]))
            reply = self._receive(place)
        return reply

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
            link.send(Close(self._wanted(self._ready[place])[1] if self._ready else {}))
        for place in range(len(self._links)):
            while self._alive[place] and not isinstance(self._receive(place), Close):
                pass
        self._end()
        self.stack.close()
        del self.stack
        self.board.close()

    def _end(self) -> None:
        for link in self._links:
            link.end()

    def _all(self, message: Any) -> list[Ready]:
        for link in self._links:
            link.send(message)
        return [self._unblocked(p, self._receive(p)) for p in range(len(self._links))]

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

    def _say(self, began: float, first: int) -> None:
        board = self.board
        pace = (board.steps.sum() - first) / (time.perf_counter() - began)
        sessions = int(board.sessions.sum())
        per_session = board.steps.sum() / max(1, sessions)
        left = (self._asked - sessions) * per_session / max(pace, 1e-9)
        log.info(
            "fleet of %d runs: %s agent-steps/s, %s of %s sessions, %d:%02d min left",
            *(int(board.running.sum()), f"{pace:,.0f}", f"{sessions:,}", f"{self._asked:,}"),
            *divmod(max(0, int(left)), 60),
        )


def device_name(device: str) -> str:
    """The device in words."""
    return torch.cuda.get_device_name(device) if device.startswith("cuda") else device
