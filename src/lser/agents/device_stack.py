"""G learners as one: an update is the same few dozen operations however many they are.

On a CUDA device the updates of a vector step are one captured graph, which runs beside the CPU:
`launch` does not wait, `found` does, and the next batches are staged in other pinned buffers
meanwhile.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import wraps
from typing import Any, ClassVar, Concatenate, ParamSpec, TypeVar

import numpy as np
import torch
from torch import Tensor

from lser.agents.acting import Acting, Answer
from lser.agents.graphs import capture_graph
from lser.agents.kernels import STACKED, compiled_if_possible, fused
from lser.agents.learner import Plan, Update
from lser.agents.minibatch import (
    BatchShape,
    HostBatches,
    UnpackedBatches,
    host_batches,
    plan_numbers,
    unpack,
)
from lser.agents.streams import Beside
from lser.agents.team import Found, Team
from lser.types import Bool, Float32, Float64

log = logging.getLogger("lser")

PAGE = 4096  # bytes

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

    beside: ClassVar[bool] = True

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
        """Make room on `device` for packed batches; with `capture` and CUDA updates are a graph.

        What several stacks have under way goes side by side, that of an `urgent` one first.
        """
        self.device, count = device, len(team.members)
        self._cuda = device.type == "cuda"
        self._priority = -1 if urgent else 0
        self.stream = torch.cuda.Stream(device, self._priority) if self._cuda else None
        if self._cuda:
            torch.set_float32_matmul_precision("highest")
        fusing = self._cuda and compiled
        kernels = fused() if fusing else STACKED
        if self._cuda:
            kernels = kernels._replace(side=Beside(device, self._priority))
        self.learner = team.learner_type(
            team.observation_dim, team.members, device=device, kernels=kernels
        )
        self._registered: list[Tensor] = []
        self._shape = shape
        self.batches = [host_batches(shape, self._pinned(buffer)) for buffer in buffers]
        discounts = torch.tensor([member.params.discount for member in team.members], device=device)
        self._unpacked = UnpackedBatches(
            shape, discounts.view(-1, 1, 1), compiled_if_possible(unpack) if fusing else unpack
        )
        self._single = torch.zeros(shape.floats, device=device)
        turns = -(-len(buffers) // 2)
        self._arriving = torch.zeros(2, turns, shape.floats, device=device)
        self.learner.set_control(self._unpacked.numbers)
        pin = self._cuda
        self._host_errors = torch.zeros(count, shape.rows, pin_memory=pin)
        self._host_loss = torch.zeros(count, pin_memory=pin)
        self._values = torch.zeros(count, 6, device=device)
        self._host_values = torch.zeros(count, 6, pin_memory=pin)
        self._looked = np.zeros(count, np.bool_)  # whose values, since the last `take_values`
        self._capturing = capture and self._cuda
        self._graphs: dict[tuple[Any, ...], tuple[Any, Update]] = {}
        self._acting: Acting | None = None
        self._taken = [torch.cuda.Event() for _ in range(2)] if self._cuda else []
        self._copies = torch.cuda.Stream(device, self._priority) if self._cuda else None
        self._launched = 0
        self._ended = torch.cuda.Event() if self._cuda else None
        if self._cuda:
            torch.cuda.synchronize()  # all of this was made on another stream

    @torch.no_grad()
    @on_its_stream
    def launch(self, active: Sequence[Bool], first: int, *, errors: bool = True) -> None:
        """Start updates of the agents in each of `active` (G,), one after another; do not wait.

        Their batches lie in the buffers from `first` on, which may be filled again once the answer
        to a later `ask`, or what was `found`, is there.
        """
        hosts = self.batches[first : first + len(active)]
        plans = [
            self.learner.plan(who, host.rewards, host.numbers)
            for who, host in zip(active, hosts, strict=True)
        ]
        place = self._bring(hosts)
        found = self._play(place, plans)
        if errors:
            self._host_errors.copy_(found.errors, non_blocking=True)
            self._host_loss.copy_(found.critic_loss, non_blocking=True)
        if self._ended is not None:
            self._taken[place].record()
            self._ended.record()

    def ready(self) -> bool:
        """Whether the last update has ended."""
        return self._ended is None or self._ended.query()

    def found(self) -> Found:
        """Wait for the last update; its result is valid until the next call."""
        if self._ended is not None:
            self._ended.synchronize()
        return Found(self._host_errors.numpy(), self._host_loss.numpy())

    @property
    def looked(self) -> bool:
        """Whether there is something to take, once updates have ended."""
        return bool(self._looked.any())

    def take_values(self) -> Float64:
        """The numbers of `Values` (G, 8) looked at since the last call, NaN where none."""
        values = np.full((len(self._looked), 8), np.nan)
        for slot in map(int, np.flatnonzero(self._looked)):
            values[slot] = *self._host_values[slot].tolist(), *self.learner.bounds.allowed(slot)
        self._looked[:] = False
        return values

    def _bring(self, hosts: Sequence[HostBatches]) -> int:
        """Copy batches to the device, beside the updates before; where they arrive."""
        place = self._launched % 2
        self._launched += 1
        arriving = self._arriving[place]
        if self._copies is None:
            for there, host in zip(arriving, hosts, strict=False):
                there.copy_(host.buffer)
            return place
        self._copies.wait_event(self._taken[place])
        with torch.cuda.stream(self._copies):
            for there, host in zip(arriving, hosts, strict=False):
                there.copy_(host.buffer, non_blocking=True)
        torch.cuda.current_stream().wait_stream(self._copies)
        return place

    def _play(self, place: int, plans: Sequence[Plan]) -> Update:
        """The planned updates: all at once, or one by one where something is looked at."""
        given = self._arriving[place][: len(plans)]
        if all(plan.actor and not plan.diagnose for plan in plans):

            def updates() -> Update:
                return [self._learn(batches) for batches in given][-1]

            return self._carried_out((place, len(plans)), updates, given)
        for plan, batches in zip(plans, given, strict=True):
            found = self._play_alone(plan, batches)
        return found

    def _play_alone(self, plan: Plan, batches: Tensor) -> Update:
        """One planned update."""
        self._single.copy_(batches)

        def update() -> Update:
            return self._learn(self._single, actor=plan.actor, diagnose=plan.diagnose)

        found = self._carried_out((plan.actor, plan.diagnose, "alone"), update, self._single[None])
        if found.values is not None:
            self._looked |= plan.looked
            looked = torch.from_numpy(plan.looked).to(self.device, non_blocking=True)
            self._values = torch.where(looked[:, None], found.values, self._values)
            self._host_values.copy_(self._values, non_blocking=True)
        return found

    def _learn(self, batches: Tensor, *, actor: bool = True, diagnose: bool = False) -> Update:
        """An update on batches that are on the device."""
        data = self._unpacked.take(batches)
        return self.learner.update(data, actor=actor, diagnose=diagnose)

    def _carried_out(
        self, key: tuple[Any, ...], work: Callable[[], Update], given: Tensor
    ) -> Update:
        """The work on `given` batches as a graph that is recorded once, or as it is."""
        if self._capturing and key not in self._graphs:
            self._graphs[key] = self._captured(work, given)
        graph, result = self._graphs.get(key, (None, None))
        if graph is None or result is None:
            return work()
        graph.replay()
        return result

    def _captured(self, work: Callable[[], Update], given: Tensor) -> tuple[Any, Any]:
        """The work as a graph; no agent is active meanwhile, so nothing changes."""
        kept = given.clone()
        for batches in given:
            plan_numbers(self._shape, batches)[:2] = 0
        try:
            graph, result = capture_graph(work, self._priority)
        except Exception as error:  # of torch.compile, Triton or CUDA: any kind
            log.warning("an update could not be captured, it runs eagerly: %s", error)
            graph, result = None, None
        given.copy_(kept)
        return graph, result

    @torch.no_grad()
    @on_its_stream
    def ask(self, observations: Float32, normals: Float32 | None = None) -> Answer:
        """Start on actions (G, N, A), before noise, for observations (G, N, O)."""
        given = [observations] if normals is None else [observations, normals]
        if self._acting is None or self._acting.shapes != [one.shape for one in given]:
            self._acting = Acting(self.learner, observations, normals, self._priority)
        return self._acting.ask(*given)

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
