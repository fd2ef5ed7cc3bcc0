"""A few seats in one process: their users, memories and evaluations; the learner is elsewhere."""

import logging
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import torch

from lser.agents.minibatch import BatchShape, HostBatches, host_batches
from lser.agents.team import kind
from lser.experiments.experiment import from_json
from lser.experiments.progress import ProgressFile
from lser.experiments.run import Run
from lser.experiments.study import Job
from lser.fleet.board import Board, Shape
from lser.fleet.messages import (
    Act,
    Close,
    Drawn,
    Give,
    Hear,
    Joined,
    Prepare,
    Ready,
    Save,
    States,
    receive,
    send,
)
from lser.fleet.seat import Seat
from lser.types import Float32

log = logging.getLogger("lser")


class Task(NamedTuple):
    """A seat's work in small pieces, so that errors can be heard between two."""

    seat: Seat
    pieces: Iterator[None]
    draws: bool = False  # whether the device waits for it


class Crew:
    """The seats of some jobs; a seat that fails ends alone, with its error in its record."""

    def __init__(self, jobs: Sequence[Job], device: str) -> None:
        """Build the jobs' runs; those that cannot be built fail."""
        self.seats: list[Seat | None] = []
        self._device = device
        for job in jobs:
            self.seats.append(self._seat(job))
        self._board: Board | None = None
        self._batches: list[HostBatches] = []
        self._step = 0
        self._held = False
        self._unready = False  # whether a Ready is owed
        self._undrawn = False  # whether a Drawn is
        self._tasks: deque[Task] = deque()
        self._evaluator = ThreadPoolExecutor(1)
        self._evaluations: list[tuple[Seat, Future[None]]] = []
        self._completed: set[int] = set()
        self.closed = False

    def _seat(self, job: Job) -> Seat | None:
        try:
            run = Run(from_json(dict(job.experiment)), Path(job.folder), command=job.command)
        except Exception as error:  # another owner, checkpoints that cannot be read, a full disk
            log.warning("%s: %s", job.folder, error)
            return None
        run.recorder.meta["engine"] = f"fleet on {self._device}"
        try:
            seat = Seat(run, ProgressFile(Path(job.folder), every=5.0))
            seat.open()
        except Exception as error:
            end_with(run, error)
            return None
        return seat

    def joined(self) -> list[Joined | None]:
        """What the learner's process must know of every seat."""
        return [None if seat is None else _joined(seat) for seat in self.seats]

    def sit(self, slots: Sequence[int | None], board: Board, batch: BatchShape) -> None:
        """Take the places `slots` on the board; None for seats that have none."""
        for seat, slot in zip(self.seats, slots, strict=True):
            if seat is not None and slot is not None:
                seat.slot = slot
        kept = zip(self.seats, slots, strict=True)
        self.seats = [seat if slot is not None else None for seat, slot in kept]
        self._board = board
        self._batches = [
            host_batches(batch, torch.from_numpy(buffer[: batch.floats]))
            for buffer in board.batches
        ]

    def answer(self, message: Any) -> list[Any]:
        """Do what a message asks for at once, and queue the rest; the replies so far."""
        self._note_values()
        match message:
            case Prepare():
                self._held, self._unready = False, True
                self._each(self._running(), self._go_on)
            case Act():
                self._act(message)
            case Hear():
                return [message, *self._hear()]
            case Give():
                self._give(message)
            case Save():
                self._save(message)
                return [Save({})]
            case Close():
                self._close(message)
                return [Close({})]
        return self._owed()

    def _note_values(self) -> None:
        for seat in self.seats:
            if seat is not None and not np.isnan(self.board.values[seat.slot, 0]):
                seat.note(self.board.values[seat.slot].tolist())
                self.board.values[seat.slot] = np.nan

    @property
    def busy(self) -> bool:
        """Whether there is work that no message has to be waited for."""
        return bool(self._tasks)

    def work(self) -> list[Any]:
        """A small piece of the work queued; the replies that it makes possible."""
        task = self._tasks[0]
        try:
            if task.seat.running:  # it may have failed since
                next(task.pieces)
                return []
        except StopIteration:
            pass
        except Exception as error:
            self._fail(task.seat, error)
        self._tasks.popleft()
        return self._owed()

    def waited(self, seconds: float) -> None:
        """Count time spent waiting for the learner towards learning, in equal parts."""
        running = self._running()
        for seat in running:
            seat.run.progress.times["learn"] += seconds / len(running)

    @property
    def board(self) -> Board:
        """The board, once seats have been taken."""
        assert self._board is not None
        return self._board

    def _running(self) -> list[Seat]:
        return [seat for seat in self.seats if seat is not None and seat.running]

    def _each(self, seats: Sequence[Seat], work: Any) -> None:
        """Do `work` for every seat; one that fails ends, and only that."""
        for seat in seats:
            try:
                work(seat)
            except Exception as error:
                self._fail(seat, error)

    def _fail(self, seat: Seat, error: BaseException) -> None:
        seat.running = False
        end_with(seat.run, error)
        self._completed.add(seat.slot)
        self.board.due[seat.slot] = self.board.running[seat.slot] = 0

    def _act(self, message: Act) -> None:
        for seat in self._running():
            if seat.slot in message.actors:
                self._evaluate_later(seat, message.actors[seat.slot])
        self._complete(message.states)
        self._held, self._unready = message.hold, True
        self._step += 1  # what is prepared from here on is for the next
        for each in self.seats:
            if each is not None and not each.running:
                self.board.due[each.slot] = 0
        # those that wait for errors go last: until then there is time
        for seat in sorted(self._running(), key=lambda s: s.waits):
            seat.settled = False
            self._tasks.append(Task(seat, self._step_of(seat)))

    def _step_of(self, seat: Seat) -> Iterator[None]:
        """A seat's step, in one piece."""
        seat.act(self.board.actions[seat.slot].copy())
        if seat.settled:
            self._go_on(seat)
        yield from ()

    def _go_on(self, seat: Seat) -> None:
        """After a step was stored: see the next, unless something has to come between.

        Its batches are drawn once all seats of the crew have seen theirs.
        """
        if seat.running and not self._held and not seat.blocked:
            seat.see(self.board)
            draws = seat.draw_ahead(self.board, self._batches, self._step)
            self._tasks.append(Task(seat, draws, draws=True))
        elif not seat.running:
            self.board.due[seat.slot] = 0

    def _hear(self) -> list[Any]:
        def hear(seat: Seat) -> None:
            seat.hear(self.board, self._batches, self._step - 1)
            if seat.settled:
                self._go_on(seat)

        waiting = [seat for seat in self._running() if seat.waits and not seat.settled]
        self._each(waiting, hear)
        return self._owed()

    def _owed(self) -> list[Any]:
        """Say once that all seats see their next step, and once that its batches are drawn."""
        replies = self._owed_draws()
        running = self._running()
        # the Drawn of the step before comes first, even if nobody is left to take this one
        if self._unready and not self._undrawn and all(seat.settled for seat in running):
            blocked = any(seat.blocked for seat in running)
            self._unready, self._undrawn = False, not blocked
            replies.append(self._ready(blocked=blocked))
        return replies + self._owed_draws()

    def _owed_draws(self) -> list[Any]:
        if not self._undrawn or any(task.draws for task in self._tasks):
            return []
        self._undrawn = False
        return [Drawn()]

    def _ready(self, *, blocked: bool = False) -> Ready:
        board, ended = self.board, []
        for seat in self.seats:
            if seat is None:
                continue
            board.running[seat.slot] = seat.running
            board.steps[seat.slot] = seat.run.progress.steps
            board.sessions[seat.slot] = seat.run.progress.sessions
            if seat.run.complete and seat.slot not in self._completed:
                ended.append(seat.slot)
        wanting = tuple(seat.slot for seat in self._running() if seat.wants_actor)
        return Ready(wanting, tuple(ended), blocked)

    def _give(self, message: Give) -> None:
        asking = [seat for seat in self._running() if seat.slot in message.actors]
        for seat in asking:
            if not seat.evaluates_at_once:  # behind its earlier ones
                self._evaluate_later(seat, message.actors[seat.slot])
        at_once = [seat for seat in asking if seat.running and seat.evaluates_at_once]
        self._each(at_once, lambda s: s.evaluation(message.actors[s.slot])())
        self._unready = True
        self._each(at_once, self._go_on)

    def _evaluate_later(self, seat: Seat, actor: Float32) -> None:
        """In a thread beside the steps: they need not wait for it."""
        self._evaluations.append((seat, self._evaluator.submit(seat.evaluation(actor))))
        self._collect(wait=False)

    def _complete(self, states: States) -> None:
        for seat in self.seats:
            if seat is not None and seat.slot in states and seat.slot not in self._completed:
                self._completed.add(seat.slot)
                work = self._evaluator.submit(seat.finish, states[seat.slot])
                self._evaluations.append((seat, work))

    def _collect(self, *, wait: bool) -> None:
        """Notice evaluations that are done or, with `wait`, all; an error ends its run."""
        left = []
        for seat, work in self._evaluations:
            if not wait and not work.done():
                left.append((seat, work))
            elif (error := work.exception()) is not None:
                self._fail(seat, error)
        self._evaluations = left

    def _save(self, message: Save) -> None:
        self._collect(wait=True)
        states = message.states
        self._each(self._running(), lambda s: s.checkpoint(states[s.slot]))

    def _close(self, message: Close) -> None:
        self._complete(message.states)
        self._collect(wait=True)
        self._evaluator.shutdown()
        self.closed = True
        self._each(self._running(), _pause)


def end_with(run: Run, error: BaseException) -> None:
    """Let the run's record say why it failed, if it can still be written."""
    try:
        run.recorder.fail(error)
    except OSError as unwritten:
        log.error("%s: %s; its record cannot say so: %s", run.folder, error, unwritten)
    finally:
        run.owner.release()


def _pause(seat: Seat) -> None:
    seat.run.recorder.pause()
    seat.run.owner.release()


def _joined(seat: Seat) -> Joined:
    agent = seat.agent
    return Joined(
        (*kind(agent), *pace(seat.run)),
        agent.learner_type,
        agent.observation_dim,
        agent.member,
        agent.learner.state_dict(),
        seat.waits,
    )


def pace(run: Run) -> tuple[float, ...]:
    """What else runs of a fleet must have in common."""
    experiment = run.experiment
    rate = experiment.updates_per_step
    return experiment.users, experiment.batch_size, rate, experiment.learning_starts


def work(connection: Any, jobs: Sequence[Job], device: str) -> None:
    """A crew's process: answer messages until the end, or until the learner's process is gone."""
    import signal

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the learner's process says when to stop
    torch.set_num_threads(1)
    sys.setswitchinterval(1e-3)  # evaluations must not keep the steps waiting
    crew = Crew(jobs, device)
    try:
        send(connection, crew.joined())
        slots, shape, name, batch = receive(connection)
        board = Board(Shape(*shape), name=name)
        crew.sit(slots, board, batch)
        while not crew.closed:
            if crew.busy and not connection.poll():
                replies = crew.work()
            else:
                began = perf_counter()
                message = receive(connection)
                crew.waited(perf_counter() - began)
                replies = crew.answer(message)
            for reply in replies:
                send(connection, reply)
    except (EOFError, BrokenPipeError):
        return
