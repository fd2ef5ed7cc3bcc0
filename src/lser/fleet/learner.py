"""Many DDPG learners as one: an update is the same few dozen operations however many they are.

On a CUDA device the whole update is one captured graph. It runs beside the CPU: `launch` does
not wait, `errors` does, and the next batches are staged in the other of two pinned buffers.
"""

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lser.agents import DDPG
from lser.fleet.stacks import Network, backward, forward, input_gradient
from lser.types import Batch, Bool, Float32

log = logging.getLogger(__name__)

WARM_UPS = 3  # updates of nobody before the capture, so that libraries allocate outside of it


def kind(agent: object) -> tuple[object, ...]:
    """What agents must have in common to be stacked; ValueError if this one cannot be."""
    if type(agent) is not DDPG:
        raise ValueError(f"only DDPG learners can be stacked, got {type(agent).__name__}")
    if agent._normaliser is not None:
        raise ValueError("agents with normalise=True cannot be stacked")
    if agent.device.type != "cpu":
        raise ValueError(f"agents to be stacked must be on the CPU, got {agent.device}")
    rates = agent._actor_adam.rate, agent._critic_adam.rate
    return (agent.actor.sizes, agent.critics[0].sizes, agent.tau, *rates)


class StackedDDPG:
    """G agents' learners on one device, which also chooses their actions; noise stays with them."""

    def __init__(
        self,
        agents: Sequence[DDPG],
        batch_size: int,
        device: str | torch.device = "cuda",
        *,
        graph: bool = True,
    ) -> None:
        """Take the learners of `agents`, of equal sizes and settings, where they stand."""
        kinds = {kind(agent) for agent in agents}
        if len(kinds) != 1:
            raise ValueError(f"agents must have equal sizes and settings, got {sorted(kinds)}")
        torch.set_float32_matmul_precision("highest")
        self.agents, self.batch_size = list(agents), batch_size
        self.device = torch.device(device)
        first, count = agents[0], len(agents)
        self._observations, self._actions = first.observation_dim, first.action_dim
        self._tau = first.tau
        self._actor = self._network(first.actor, first._actor_adam)
        self._critic = self._network(first.critics[0], first._critic_adam)
        self._centre = torch.stack([a._centre for a in agents]).unsqueeze(1).to(self.device)
        self._half = torch.stack([a._half for a in agents]).unsqueeze(1).to(self.device)
        self._discount = torch.tensor(
            [[[agent.discount]] for agent in agents], dtype=torch.float32, device=self.device
        )
        # [observation | action | reward | next observation | terminated | weight]
        self._width = 2 * self._observations + self._actions + 3
        shape = (count, batch_size, self._width)
        self._buffers = [self._pinned(shape), self._pinned(shape)]
        self._staging: list[Float32] = [buffer.numpy() for buffer in self._buffers]
        self._rows = torch.zeros(shape, device=self.device)
        self._errors = torch.zeros(count, batch_size, device=self.device)
        self._host_errors = self._pinned((count, batch_size))
        self._host_active = np.zeros(count, np.bool_)
        self._active = torch.zeros(count, 1, device=self.device)
        self._upload()
        cuda = self.device.type == "cuda"
        self._done = torch.cuda.Event() if cuda else None
        self._graph = self._capture() if graph and self._done is not None else None

    def learn(self, batches: Sequence[Batch]) -> Float32:
        """One update of every agent, each on its own batch; returns the TD errors, (G, b)."""
        for slot, batch in enumerate(batches):
            self.stage(slot, batch)
        self.launch(np.ones(len(self.agents), np.bool_))
        return self.errors().copy()

    def stage(self, slot: int, batch: Batch) -> None:
        """Copy the batch of one agent's next update in."""
        rows = self._staging[0][slot]
        whole = batch.observation.base
        if whole is not None and whole is batch.next_observation.base and whole.shape == rows.shape:
            rows[:] = whole  # rows of a `Store`: all as here, but for the weight in the last place
            rows[:, -1] = batch.weights
            return
        seen, acted = self._observations, self._observations + self._actions
        rows[:, :seen] = batch.observation
        rows[:, seen:acted] = batch.action
        rows[:, acted] = batch.reward
        rows[:, acted + 1 : -2] = batch.next_observation
        rows[:, -2] = batch.terminated
        rows[:, -1] = batch.weights

    @torch.no_grad()
    def launch(self, active: Bool) -> None:
        """Start an update of the agents in `active` (G,) on what was staged; do not wait.

        Call `errors` before the next `launch`: it makes the buffers safe to fill again.
        """
        if not np.array_equal(active, self._host_active):
            self._host_active = active.copy()
            self._active.copy_(torch.from_numpy(active[:, None].astype(np.float32)))
        self._rows.copy_(self._buffers[0], non_blocking=True)
        self._buffers.reverse()
        self._staging.reverse()
        if self._graph is not None:
            self._graph.replay()
        else:
            self._update()
        self._host_errors.copy_(self._errors, non_blocking=True)
        if self._done is not None:
            self._done.record()

    def errors(self) -> Float32:
        """Wait for the update; its TD errors (G, b), valid until the next `launch`."""
        if self._done is not None:
            self._done.synchronize()
        errors: Float32 = self._host_errors.numpy()
        return errors

    @torch.no_grad()
    def choose(self, observations: Float32) -> Float32:
        """Actions (G, N, A), before noise, for observations (G, N, O)."""
        inputs = torch.from_numpy(observations).to(self.device)
        action = self._squash(torch.tanh(forward(self._actor.layers, inputs)[0]))
        chosen: Float32 = action.cpu().numpy()
        return chosen

    def download_actors(self, slots: Sequence[int] | None = None) -> None:
        """Give the agents in `slots`, or all, their actors' parameters, all that acting needs."""
        for slot in range(len(self.agents)) if slots is None else slots:
            self.agents[slot].actor.vector.copy_(self._actor.values[slot])

    def download(self, slots: Sequence[int] | None = None) -> None:
        """Give the agents in `slots`, or all, everything: networks, targets, Adam's state."""
        chosen = range(len(self.agents)) if slots is None else slots
        actor, critic = self._actor, self._critic
        for slot in chosen:
            state = self.agents[slot].state_dict()
            state["parameters"] = torch.cat([actor.values[slot], critic.values[slot]]).cpu()
            state["targets"] = torch.cat([actor.targets[slot], critic.targets[slot]]).cpu()
            state["actor_adam"] = actor.adam_state(slot)
            state["critic_adam"] = critic.adam_state(slot)
            self.agents[slot].load_state_dict(state)

    def _network(self, twin: Any, adam: Any) -> Network:
        return Network(twin.sizes, len(self.agents), len(twin.vector), adam.rate, self.device)

    def _pinned(self, shape: tuple[int, ...]) -> Tensor:
        return torch.zeros(shape, pin_memory=self.device.type == "cuda")

    def _upload(self) -> None:
        states = [agent.state_dict() for agent in self.agents]
        split = self._actor.values.shape[1]
        parts = (
            (self._actor, "actor_adam", slice(None, split)),
            (self._critic, "critic_adam", slice(split, None)),
        )
        for network, adam, part in parts:
            network.values.copy_(torch.stack([s["parameters"][part] for s in states]))
            network.targets.copy_(torch.stack([s["targets"][part] for s in states]))
            network.mean.copy_(torch.stack([s[adam]["mean"] for s in states]))
            network.square.copy_(torch.stack([s[adam]["square"] for s in states]))
            network.steps.copy_(torch.tensor([[float(s[adam]["steps"])] for s in states]))

    @torch.no_grad()
    def _capture(self) -> torch.cuda.CUDAGraph | None:
        """The update as a graph; nobody is active meanwhile, so nothing changes."""
        try:
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(WARM_UPS):
                    self._update()
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self._update()
        except RuntimeError as error:
            log.warning("the update could not be captured, it runs eagerly: %s", error)
            return None
        return graph

    def _update(self) -> None:
        """`DDPG.learn` for every agent: a step of the critics, the actors and the targets."""
        rows, actor, critic, active = self._rows, self._actor, self._critic, self._active
        seen, acted = self._observations, self._observations + self._actions
        observation, following = rows[..., :seen], rows[..., acted + 1 : -2]
        reward, ends, weights = rows[..., acted, None], rows[..., -2, None], rows[..., -1, None]

        action = self._squash(torch.tanh(forward(actor.target_layers, following)[0]))
        value, _ = forward(critic.target_layers, torch.cat([following, action], 2))
        target = torch.addcmul(reward, (1 - ends) * self._discount, value)
        value, traces = forward(critic.layers, rows[..., :acted])
        error = target - value
        gradient = weights * error * (-2 / self.batch_size)
        backward(critic.layers, traces, gradient, critic.gradient_layers)
        critic.step(active)
        self._errors.copy_(error.squeeze(2))

        raw, actor_traces = forward(actor.layers, observation)
        tanh = torch.tanh(raw)
        own = torch.cat([observation, self._squash(tanh)], 2)
        value, traces = forward(critic.layers, own)
        downhill = torch.full_like(value, -1 / self.batch_size)
        gradient = input_gradient(critic.layers, traces, downhill, first=seen)
        gradient = torch.ops.aten.tanh_backward(gradient * self._half, tanh)
        backward(actor.layers, actor_traces, gradient, actor.gradient_layers)
        actor.step(active)
        for network in (actor, critic):
            network.follow(self._tau * active)

    def _squash(self, tanh: Tensor) -> Tensor:
        return torch.addcmul(self._centre, self._half, tanh)
