"""Between the event loop and the log's writer thread.

Requests that the loop takes up in one turn are handed over together, and those that a commit
decided are woken together: a thread's turn costs more than a row.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from lser.online.log import Entry, Log, LogRefusedError, Receipt

Waiting = asyncio.Future[list[Receipt]]


class Committer:
    """Hands entries to the log's writer and wakes whoever waits, once per commit."""

    def __init__(self, log: Log) -> None:
        """Write to `log` from the running event loop."""
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._asked: list[tuple[Sequence[Entry], Waiting]] = []
        self._done: deque[tuple[Waiting, Any, Exception | None]] = deque()
        self._called = False

    async def append(self, entries: Sequence[Entry], timeout: float) -> list[Receipt]:
        """Append entries and wait until they are durable."""
        future: Waiting = self._loop.create_future()
        if not self._asked:
            self._loop.call_soon(self._submit)
        self._asked.append((entries, future))
        late = self._loop.call_later(timeout, _expire, future, timeout)  # cheaper than wait_for
        try:
            return await future
        finally:
            late.cancel()

    def _submit(self) -> None:
        asked, self._asked = self._asked, []
        try:
            self._log.submit([(entries, self._answer(future)) for entries, future in asked])
        except LogRefusedError as error:
            for _, future in asked:
                if not future.done():
                    future.set_exception(error)

    def _answer(self, future: Waiting) -> Callable[[list[Receipt] | None, Exception | None], None]:
        def done(receipts: list[Receipt] | None, error: Exception | None) -> None:
            self._done.append((future, receipts, error))
            if not self._called:
                self._called = True
                self._loop.call_soon_threadsafe(self._wake)

        return done

    def _wake(self) -> None:
        self._called = False
        while self._done:
            future, receipts, error = self._done.popleft()
            if future.done():
                continue
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(receipts or [])


def _expire(future: Waiting, timeout: float) -> None:
    if not future.done():
        future.set_exception(LogRefusedError(f"the log did not answer within {timeout} s"))
