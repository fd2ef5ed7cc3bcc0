"""G learners as one: an update is the same few dozen operations however many they are.

On a CUDA device an update is one captured graph, which runs beside the CPU: `launch` does not wait,
`found` does, and the next batches are staged in other pinned buffers meanwhile.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import torch
from torch import Tensor

from lser.agents.kernels import STACKED, fused
from lser.agents.learner import Plan, Update
from lser.agents.minibatch import BatchShape, HostBatches, minibatch, plan_numbers
from lser.agents.team import Found, Team
from lser.types import Bool, Float32, Float64

log = logging.getLogger("lser")

PAGE = 4096  # bytes
WARM_UPS = 3  # updates without active agents before a capture: libraries allocate outside of it

P = ParamSpec("P")
R = TypeVar("R")


def on_its_stream(
    method: Callable[Concatenate["DeviceStack", P], R],
) -> Callable[Concatenate["DeviceStack", P], R]:
    """Let a method's work on the device wait for nothing but the same stack's."""

    @wraps(method)
    def call(self: "DeviceStack", /, *args: P.args, **kwargs: P.kwargs) -> R:
        with nullcontext() if self.stream is None else torch.cuda.stream(self.stream):
            return method(self, *args, **kwargs)

    return call


class DeviceStack:
    """Learners stacked on one device, with their arrays side by side."""

    def __init__(
        self,
        team: Team,
        shape: BatchShape,
        buffers: Sequence[Tensor],
        device: torch.device,
        *,
        capture: bool = True,
        compiled: bool = True,
        urgent: bool = False,
    ) -> None:
        """Make room on `device`; with `capture` and CUDA an update is one graph.

        What several stacks have under way goes side by side, that of an `urgent` one first.
        """
        self.device, count = device, len(team.members)
        self._cuda = device.type == "cuda"
        self._priority = -1 if urgent else 0
        self.stream = torch.cuda.Stream(device, self._priority) if self._cuda else None
        if self._cuda:
            torch.set_float32_matmul_precision("highest")
        kernels = fused() if self._cuda and compiled else STACKED
        self.learner = team.learner_type(
            team.observation_dim, team.members, device=device, kernels=kernels
        )
        self._registered: list[Tensor] = []
        self.batches = [HostBatches(shape, self._pinned(buffer)) for buffer in buffers]
        self._device_batches = torch.zeros(shape.floats, device=device)
        self._arriving = [torch.zeros_like(self._device_batches) for _ in range(2)]
        self._data = minibatch(shape, self._device_batches)
        self._numbers = plan_numbers(shape, self._device_batches)
        self.learner.set_control(self._numbers)
        pin = self._cuda
        self._host_errors = torch.zeros(count, shape.rows, pin_memory=pin)
        self._host_loss = torch.zeros(count, pin_memory=pin)
        self._host_values = torch.zeros(count, 6, pin_memory=pin)
        self._looked = np.zeros(count, np.bool_)  # whose values, since the last `take_values`
        self._capturing = capture and self._cuda
        self._graphs: dict[tuple[bool, bool], tuple[Any, Update]] = {}
        self._acting: tuple[Any, Tensor, Tensor | None, Tensor] | None = None
        self._copied = [torch.cuda.Event() for _ in buffers] if self._cuda else []
        self._taken = [torch.cuda.Event() for _ in range(2)] if self._cuda else []
        self._copies = torch.cuda.Stream(device, self._priority) if self._cuda else None
        self._launched = 0
        self._ended = torch.cuda.Event() if self._cuda else None
        if self._cuda:
            torch.cuda.synchronize()  # all of this was made on another stream

    @torch.no_grad()
    @on_its_stream
    def launch(self, active: Bool, buffer: int, *, errors: bool = True) -> None:
        """Start an update of the agents in `active` (G,) on what lies in that buffer; do not wait.

        The buffer may be filled again once `found` or `choose` of a later call has returned.
        """
        host = self.batches[buffer]
        plan = self.learner.plan(active, host.rewards, host.numbers)
        self._bring(buffer)
        found = self._update(plan)
        self._looked |= plan.looked
        if found.values is not None:
            self._host_values.copy_(found.values, non_blocking=True)
        if errors:
            self._host_errors.copy_(found.errors, non_blocking=True)
            self._host_loss.copy_(found.critic_loss, non_blocking=True)
        if self._ended is not None:
            self._ended.record()

    def ready(self) -> bool:
        """Whether the last update has ended."""
        return self._ended is None or self._ended.query()

    def found(self) -> Found:
        """Wait for the last update; its result is valid until the next call."""
        if self._ended is not None:
            self._ended.synchronize()
        return Found(self._host_errors.numpy(), self._host_loss.numpy())

    def take_values(self) -> Float64:
        """The numbers of `Values` (G, 8) looked at since the last call, NaN where none."""
        values = np.full((len(self._looked), 8), np.nan)
        for slot in map(int, np.flatnonzero(self._looked)):
            values[slot] = *self._host_values[slot].tolist(), *self.learner.bounds.allowed(slot)
        self._looked[:] = False
        return values

    def _bring(self, buffer: int) -> None:
        """Copy the batches to where the update reads them, beside the update before."""
        host = self.batches[buffer].buffer
        if self._copies is None:
            self._device_batches.copy_(host)
            return
        place = self._launched % 2
        self._launched += 1
        self._copies.wait_event(self._taken[place])
        with torch.cuda.stream(self._copies):
            self._arriving[place].copy_(host, non_blocking=True)
            self._copied[buffer].record()
        current = torch.cuda.current_stream()
        current.wait_event(self._copied[buffer])
        self._device_batches.copy_(self._arriving[place])
        self._taken[place].record()

    def _update(self, plan: Plan) -> Update:
        def work() -> Update:
            return self.learner.update(self._data, actor=plan.actor, diagnose=plan.diagnose)

        key = plan.actor, plan.diagnose
        if self._capturing and key not in self._graphs:
            self._graphs[key] = self._captured(work)
        graph, result = self._graphs.get(key, (None, None))
        if graph is None or result is None:
            return work()
        graph.replay()
        return result

    def _captured(self, work: Callable[[], Update]) -> tuple[Any, Any]:
        """The work as a graph; no agent is active meanwhile, so nothing changes."""
        batches = self._device_batches.clone()  # an update fills in actions
        self._numbers[:2] = 0
        try:
            graph, result = capture_graph(work, self._priority)
        except Exception as error:  # of torch.compile, Triton or CUDA: any kind
            log.warning("an update could not be captured, it runs eagerly: %s", error)
            graph, result = None, None
        self._device_batches.copy_(batches)
        return graph, result

    @torch.no_grad()
    @on_its_stream
    def choose(self, observations: Float32, normals: Float32 | None = None) -> Float32:
        """Actions (G, N, A), before noise, for observations (G, N, O)."""
        seen = torch.from_numpy(observations)
        drawn = None if normals is None else torch.from_numpy(normals)
        if not self._capturing:
            given = None if drawn is None else drawn.to(self.device).mT
            action = self.learner.choose(seen.to(self.device), given)
        else:
            if self._acting is None or self._acting[1].shape != seen.shape:
                self._acting = self._capture_acting(seen, drawn)
            graph, static, static_normals, action = self._acting
            static.copy_(seen)
            if static_normals is not None and drawn is not None:
                static_normals.copy_(drawn)
            graph.replay()
        chosen: Float32 = action.cpu().numpy()
        return chosen

    def _capture_acting(
        self, seen: Tensor, drawn: Tensor | None
    ) -> tuple[Any, Tensor, Tensor | None, Tensor]:
        static = seen.to(self.device)
        normals = None if drawn is None else drawn.to(self.device)
        given = None if normals is None else normals.mT

        def work() -> Tensor:
            return self.learner.choose(static, given)

        graph, action = capture_graph(work, self._priority)
        return graph, static, normals, action

    @on_its_stream
    def actor(self, slot: int) -> Float32:
        """One agent's actor, (P,)."""
        found: Float32 = self.learner.actor.vector[slot].clone().cpu().numpy()
        return found

    @on_its_stream
    def state(self, slot: int) -> dict[str, Any]:
        """One agent's learner, as its `state_dict`."""
        return self.learner.state_dict(slot)

    @on_its_stream
    def load(self, slot: int, state: dict[str, Any]) -> None:
        """Continue one agent's learner from its `state_dict`."""
        self.learner.load_state_dict(state, slot)

    def _pinned(self, buffer: Tensor) -> Tensor:
        """A buffer with its pages locked in place, if it shares them with nothing else."""
        if self._cuda and not buffer.is_pinned() and buffer.data_ptr() % PAGE == 0:
            code = torch.cuda.cudart().cudaHostRegister(buffer.data_ptr(), buffer.nbytes, 0)
            if int(code) == 0:
                self._registered.append(buffer)
            else:
                log.warning("host memory could not be pinned (code %s): slower", int(code))
        return buffer

    def close(self) -> None:
        """Let go of the buffers' pages, before their memory goes."""
        if self._cuda:
            torch.cuda.synchronize()
        for buffer in self._registered:
            torch.cuda.cudart().cudaHostUnregister(buffer.data_ptr())
        self._registered.clear()


def capture_graph(work: Callable[[], Any], priority: int) -> tuple[Any, Any]:
    """A CUDA graph of `work`, and what it returned while it was recorded.

    Its kernels keep the priority of the stream they were recorded on.
    """
    side = torch.cuda.Stream(priority=priority)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM_UPS):
            work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        result = work()
    return graph, result
