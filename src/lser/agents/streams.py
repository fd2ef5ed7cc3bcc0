"""Where work that others need not wait for goes: beside them on a device, or in its turn."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import torch

_HERE: AbstractContextManager[Any] = nullcontext()


class Side(Protocol):
    """A way beside the main one; what goes there must outlive `join`."""

    def fork(self) -> AbstractContextManager[Any]:
        """What is started inside needs only what was started before, and nobody waits for it."""
        ...

    def join(self) -> None:
        """What is started from here on needs all that was forked."""
        ...


class InTurn:
    """No way beside: forked work is done at once."""

    def fork(self) -> AbstractContextManager[Any]:
        """Go on as before."""
        return _HERE

    def join(self) -> None:
        """Nothing to wait for."""


class Beside:
    """A stream beside the current one, also where that is being captured."""

    def __init__(self, device: torch.device, priority: int = 0) -> None:
        """Make the stream."""
        self._stream = torch.cuda.Stream(device, priority)

    def fork(self) -> AbstractContextManager[Any]:
        """The stream, once what the current one has been given so far is done."""
        self._stream.wait_stream(torch.cuda.current_stream())
        forked: AbstractContextManager[Any] = torch.cuda.stream(self._stream)
        return forked

    def join(self) -> None:
        """Let the current stream wait for it."""
        torch.cuda.current_stream().wait_stream(self._stream)
