"""How a fleet's learner reaches a crew, in this process or in one of its own."""

import multiprocessing
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol

from lser.experiments.study import Job, for_children
from lser.fleet.board import Board
from lser.fleet.crew import Crew, work
from lser.fleet.messages import Joined, receive, send


class Link(Protocol):
    """A crew, in this process or another."""

    def send(self, message: Any) -> None:
        """Let it do what the message asks for."""
        ...

    def ready(self) -> bool:
        """Whether `receive` would not wait."""
        ...

    def receive(self) -> Any:
        """Its next reply; EOFError if it is gone."""
        ...

    def join(self) -> list[Joined | None]:
        """What its seats are."""
        ...

    def sit(self, slots: list[int | None], board: Board, batch: Any) -> None:
        """Give its seats their places."""
        ...

    def end(self) -> None:
        """Wait for its end."""
        ...


class LocalLink:
    """A crew in this process."""

    def __init__(self, jobs: Sequence[Job], device: str) -> None:
        self._crew = Crew(jobs, device)
        self._replies: deque[Any] = deque()

    def send(self, message: Any) -> None:
        """Do it at once."""
        self._replies.extend(self._crew.answer(message))

    def ready(self) -> bool:
        """Always: it works when it is asked."""
        return True

    def receive(self) -> Any:
        """The next reply, after as much work as that takes."""
        while not self._replies:
            self._replies.extend(self._crew.work())
        return self._replies.popleft()

    def join(self) -> list[Joined | None]:
        """What its seats are."""
        return self._crew.joined()

    def sit(self, slots: list[int | None], board: Board, batch: Any) -> None:
        """Give its seats their places."""
        self._crew.sit(slots, board, batch)

    def end(self) -> None:
        """Nothing to wait for."""


class ProcessLink:
    """A crew in a process of its own."""

    def __init__(self, jobs: Sequence[Job], device: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=work, args=(theirs, list(jobs), device))
        with for_children():
            self._process.start()
        theirs.close()  # so that its death is an end of file here

    def send(self, message: Any) -> None:
        """Send the message; one that is gone is noticed at the next `receive`."""
        with suppress(BrokenPipeError, ConnectionResetError):
            send(self._pipe, message)

    def ready(self) -> bool:
        """Whether a reply, or its end, has arrived."""
        try:
            return self._pipe.poll()
        except OSError:  # it is gone
            return True

    def receive(self) -> Any:
        """The next reply."""
        try:
            return receive(self._pipe)
        except (ConnectionResetError, OSError):
            raise EOFError from None

    def join(self) -> list[Joined | None]:
        """What its seats are."""
        found: list[Joined | None] = self.receive()
        return found

    def sit(self, slots: list[int | None], board: Board, batch: Any) -> None:
        """Give its seats their places."""
        self.send((slots, tuple(board.shape), board.name, batch))

    def end(self) -> None:
        """Wait for the process."""
        self._pipe.close()
        self._process.join()
