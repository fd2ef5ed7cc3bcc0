"""How the actors of a stack are asked: nobody has to wait for the answer."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from lser.agents.graphs import capture_graph
from lser.agents.learner import Learner
from lser.types import Float32


class Answer(NamedTuple):
    """Actions that are on their way from a device, or there."""

    actions: Float32  # (G, N, A)
    there: Any  # an event, or None if they are

    def ready(self) -> bool:
        """Whether they are there."""
        return self.there is None or bool(self.there.query())

    def take(self) -> Float32:
        """The actions, valid until the next are asked for."""
        if self.there is not None:
            self.there.synchronize()
        return self.actions


class Acting:
    """The way from observations (G, N, O) on the host to actions (G, N, A) there."""

    def __init__(
        self, learner: Learner, observations: Float32, normals: Float32 | None, priority: int
    ) -> None:
        """Make room for observations and normal draws of these shapes; on CUDA, one graph."""
        self._device, pin = learner.device, learner.device.type == "cuda"
        given = [observations] if normals is None else [observations, normals]
        self.shapes = [one.shape for one in given]
        self._host = [torch.from_numpy(one.copy()) for one in given]
        if pin:
            self._host = [one.pin_memory() for one in self._host]
        self._seen = [one.to(self._device) for one in self._host]
        drawn = None if normals is None else self._seen[1].mT

        def work() -> Tensor:
            return learner.choose(self._seen[0], drawn)

        self._work = work
        self._graph: Any
        self._actions: Tensor
        self._graph, self._actions = capture_graph(work, priority) if pin else (None, work())
        self._answer = torch.empty(self._actions.shape, pin_memory=pin)
        self._there = torch.cuda.Event() if pin else None

    def ask(self, *given: Float32) -> Answer:
        """Start on these observations and draws."""
        for new, host, seen in zip(given, self._host, self._seen, strict=True):
            host.numpy()[:] = new
            seen.copy_(host, non_blocking=True)
        if self._graph is None:
            self._actions = self._work()
        else:
            self._graph.replay()
        self._answer.copy_(self._actions, non_blocking=True)
        if self._there is not None:
            self._there.record()
        return Answer(self._answer.numpy(), self._there)
