"""Between the event loop and the log's writer thread.

Requests that the loop takes up in one turn are handed over together, and wait and wake together: a
thread's turn costs more than a row.
"""

import asyncio
from collections.abc import Sequence

from lser.online.log import Entry, Log, LogRefusedError, Receipt

TURNS = 4  # of the loop, microseconds each if idle, for which requests wait for others
Asked = tuple[Sequence[Entry], asyncio.Future[list[Receipt]]]


class Committer:
    """Hands entries to the log's writer and wakes whoever waits for them."""

    def __init__(self, log: Log, timeout: float) -> None:
        """Write to `log` from the running event loop; its answers may take `timeout` seconds."""
        self._log, self._timeout = log, timeout
        self._loop = asyncio.get_running_loop()
        self._asked: list[Asked] = []

    async def append(self, entries: Sequence[Entry]) -> list[Receipt]:
        """Append entries and wait until they are durable."""
        future: asyncio.Future[list[Receipt]] = self._loop.create_future()
        if not self._asked:
            self._loop.call_soon(self._gather, 0, TURNS)
        self._asked.append((entries, future))
        return await future

    def _gather(self, seen: int, turns: int) -> None:
        """Submit what was asked once a turn of the loop brings no more, or after some turns."""
        if turns and len(self._asked) > seen:
            self._loop.call_soon(self._gather, len(self._asked), turns - 1)
        else:
            self._submit()

    def _submit(self) -> None:
        asked, self._asked = self._asked, []
        late = LogRefusedError(f"the log did not answer within {self._timeout} s")
        timer = self._loop.call_later(self._timeout, _refuse, asked, late)

        def decided(receipts: list[Receipt] | None, error: Exception | None) -> None:
            self._loop.call_soon_threadsafe(_wake, asked, timer, receipts, error)

        try:
            self._log.submit([([entry for entries, _ in asked for entry in entries], decided)])
        except LogRefusedError as error:
            timer.cancel()
            _refuse(asked, error)


def _wake(
    asked: list[Asked],
    timer: asyncio.TimerHandle,
    receipts: list[Receipt] | None,
    error: Exception | None,
) -> None:
    timer.cancel()
    if error is not None:
        _refuse(asked, error)
        return
    first = 0
    for entries, future in asked:
        if not future.done():  # by the timer, or by a client who left
            future.set_result((receipts or [])[first : first + len(entries)])
        first += len(entries)


def _refuse(asked: list[Asked], error: Exception) -> None:
    for _, future in asked:
        if not future.done():
            future.set_exception(error)
