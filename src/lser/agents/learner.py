"""What agents learn with: networks, targets and optimisers, for one agent or for a stack of G.

A learner is written once. Its arrays are plain for one agent on the CPU, and have a leading axis
of agents in a stack; numbers that may differ between agents are floats for one and tensors in a
stack. A subclass adds `_target` and `_improve`.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from lser.agents.adam import Adam
from lser.agents.critics import Shape, make_critic
from lser.agents.kernels import PLAIN, Kernels
from lser.agents.minibatch import BatchShape, Minibatch
from lser.agents.params import ActorCriticParams
from lser.agents.perceptron import Perceptron, Sizes, as_tensor, parameter_count
from lser.agents.value_bounds import ValueBounds
from lser.types import Bool, Float32

PROBES = 8  # random actions for the spread of values
SATURATED = 0.99  # of half the bounds' range


class Member(NamedTuple):
    """One agent as its learner sees it."""

    params: Any  # of the agent's own kind
    low: Float32  # (A,) bounds of the action
    high: Float32  # (A,)


class Update(NamedTuple):
    """What an update found; in a stack every field has a leading axis of agents."""

    errors: Tensor  # (b,) signed: target minus value, mean over critics
    critic_loss: Any  # a float, or (G,)
    values: Tensor | None  # (6,) the numbers of `Values` without the bounds, when asked for


class Ahead(NamedTuple):
    """What a stack finds of a batch while the targets are still on their way."""

    value: Tensor  # (G, b, 1) of the first critic
    raw: Tensor | None  # (G, b, outputs) of the actor, if it moves


class Plan(NamedTuple):
    """The host's part of the next update of a stack."""

    actor: bool  # whether some agent's actor moves
    diagnose: bool  # whether some agent's values are to be looked at
    looked: Bool  # (G,) whose


class Learner(ABC):
    """An actor and its critics with target copies, side by side in three flat vectors.

    `parameters`, `targets` and `gradients` hold the networks in the order actor, critics, so that
    an optimiser step or a target update is one operation.
    """

    critic_count: ClassVar[int] = 1
    outputs_per_action: ClassVar[int] = 1
    normals: ClassVar[int] = 0  # arrays (b, A) of standard normal draws that an update needs
    normals_to_act: ClassVar[int] = 0
    numbers: ClassVar[tuple[str, ...]] = (
        "active",
        "moving",
        "critic_rate",
        "critic_correction",
        "actor_rate",
        "actor_correction",
        "low",
        "high",
    )

    def __init__(
        self,
        observation_dim: int,
        members: Sequence[Member],
        *,
        device: torch.device,
        kernels: Kernels = PLAIN,
    ) -> None:
        """Make room for the `members`, of equal architecture; PLAIN kernels take only one."""
        first: ActorCriticParams = members[0].params
        self.members, self.device = list(members), device
        self.stacked = kernels is not PLAIN
        self.observation_dim, self.action_dim = observation_dim, len(members[0].low)
        self._lead: Sizes = (len(members),) if self.stacked else ()
        self._kernels = kernels
        self._tapes: dict[str, Any] = {}
        self._build(first, kernels)
        params = [member.params for member in members]
        low, high = (np.stack([getattr(m, name) for m in members]) for name in ("low", "high"))
        self._centre, self._half = (
            self._per_agent(values) for values in ((high + low) / 2, (high - low) / 2)
        )
        self._tau = self._per_agent([[p.tau] for p in params], 1) if self.stacked else first.tau
        self._penalty = first.preactivation_penalty
        every = [p.diagnose_every or 2**62 for p in params]
        self._every = np.array(every, np.int64)
        self._delay = np.array([getattr(p, "delay", 1) for p in params])
        self._first_every, self._first_delay = every[0], int(self._delay[0])
        self.bounds = ValueBounds(params)
        self._limits = np.array([[-np.inf], [np.inf]]).repeat(len(members), 1)
        self.updates = np.zeros(len(members), np.int64)
        self.actor_loss: Any = torch.zeros(self._lead, device=device) if self.stacked else 0.0
        probes = np.random.default_rng(0).uniform(-1, 1, (PROBES, self.action_dim))
        self._probes = torch.from_numpy(probes.astype(np.float32)).to(device)
        self.control: dict[str, Tensor] = {}  # the plan's numbers on the device, each (G, 1)
        self.limits: Any = (-np.inf, np.inf)  # of the targets; in a stack two (G, 1, 1)

    def _build(self, params: ActorCriticParams, kernels: Kernels) -> None:
        hidden = params.hidden
        actor = (self.observation_dim, *hidden, self.outputs_per_action * self.action_dim)
        shape = Shape(params.critic, self.observation_dim, self.action_dim, hidden)
        counts = [parameter_count(actor)] + [shape.parameters] * self.critic_count
        trios = []
        for _ in range(3):
            vector = torch.zeros(*self._lead, sum(counts), device=self.device)
            head, *rest = torch.split(vector, counts, -1)
            critics = [make_critic(shape, part, kernels) for part in rest]
            trios.append((vector, Perceptron(actor, head, kernels), critics))
        self.parameters, self.actor, self.critics = trios[0]
        self.targets, self.target_actor, self.target_critics = trios[1]
        self.gradients, self.actor_gradient, self.critic_gradients = trios[2]
        self.split = counts[0]  # where the critics start
        parts = slice(None, self.split), slice(self.split, None)
        actor_rates, critic_rates = (
            [getattr(member.params, name) for member in self.members]
            for name in ("actor_lr", "critic_lr")
        )
        self.actor_adam, self.critic_adam = (
            Adam(self.parameters[..., part], self.gradients[..., part], rates, kernels)
            for part, rates in zip(parts, (actor_rates, critic_rates), strict=True)
        )
        self._followers, self._followed = self.targets, self.parameters

    def initialise(self, generator: torch.Generator) -> None:
        """Draw the first weights of a single agent."""
        gain = self.members[0].params.norm_gain
        self.actor.initialise(generator, gain=gain)
        for critic in self.critics:
            critic.initialise(generator, gain)
        self.targets.copy_(self.parameters)

    def batch_shape(self, rows: int) -> BatchShape:
        """The sizes of an update's batches of `rows` transitions."""
        agents = len(self.members) if self.stacked else None
        numbers = len(self.numbers) if self.stacked else 0
        sizes = self.observation_dim, self.action_dim, self.normals, numbers
        return BatchShape(agents, rows, *sizes)

    # --- the host's part of an update -------------------------------------------------------

    def plan(self, active: Bool, rewards: Float32, numbers: Float32) -> Plan:
        """Count an update of the agents in `active` (G,) and write its `numbers` (names, G).

        `rewards` are those of all agents' batches, (G, b).
        """
        self.updates += active
        due = (self.updates % self._every == 0) & active
        self.bounds.see_all(active & self.bounds.automatic | due, rewards)
        moving = active & (self.updates % self._delay == 0)
        if self.bounds.given:
            self._limits = self.bounds.all_limits()
        who, critic, actor, limits = numbers[:2], numbers[2:4], numbers[4:6], numbers[6:8]
        who[:], limits[:] = (active, moving), self._limits
        self.critic_adam.plan(active, critic)
        self.actor_adam.plan(moving, actor)
        return Plan(bool(moving.any()), bool(due.any()), due)

    def set_control(self, numbers: Tensor) -> None:
        """Take the plan's numbers (names, G) on the device as those of the next updates."""
        names = zip(self.numbers, numbers.unsqueeze(-1), strict=True)
        self.control = dict(names)
        self.limits = self.control["low"].unsqueeze(-1), self.control["high"].unsqueeze(-1)

    # --- the update -------------------------------------------------------------------------

    def update(self, data: Minibatch, *, actor: bool = True, diagnose: bool = False) -> Update:
        """A step of the critics and, with `actor`, of the actor and the targets."""
        ahead = self._look_ahead(data, actor=actor) if self.stacked else None
        target = self._target(data)
        if self.bounds.given:
            target = target.clamp(*self.limits)
        self._kernels.side.join()
        loss, errors, first = self._fit_critics(data, target, ahead)
        if actor:
            raw = ahead.raw if ahead else None
            self._note_actor_loss(self._improve(data, self._said(data) if raw is None else raw))
            self._follow()
        values = self._look_at_values(data, target - first) if diagnose else None
        return Update(errors, loss, values)

    def _look_ahead(self, data: Minibatch, *, actor: bool) -> Ahead:
        """Beside the way to the targets: what needs neither them nor the critics' next step."""
        with self._kernels.side.fork():
            tape = self._tape("critic", self.critics[0], data.inputs.shape[-2])
            value = self.critics[0].forward(data.inputs, tape)
            return Ahead(value, self._said(data) if actor else None)

    def _said(self, data: Minibatch) -> Tensor:
        """The actor's outputs for the batch's observations."""
        tape = self._tape("actor", self.actor, data.inputs.shape[-2])
        return self.actor.forward(data.observation, tape)

    def update_alone(self, data: Minibatch, rewards: Float32) -> Update:
        """The whole next update of a single agent, whose batch has these `rewards` (b,)."""
        self.updates[0] += 1
        updates = int(self.updates[0])
        diagnose = updates % self._first_every == 0
        if diagnose or self.bounds.automatic[0]:
            self.bounds.see(0, rewards)
        if self.bounds.given:
            self.limits = self.bounds.limits()
        return self.update(data, actor=updates % self._first_delay == 0, diagnose=diagnose)

    @abstractmethod
    def _target(self, data: Minibatch) -> Tensor:
        """What the critics' values should be, (.., b, 1)."""

    @abstractmethod
    def _improve(self, data: Minibatch, raw: Tensor) -> Any:
        """One step of the actor, whose outputs for the batch are `raw`; returns its loss."""

    def choose(self, observation: Tensor, normal: Tensor | None = None) -> Tensor:
        """Actions (.., N, A) before noise; a `normal` draw (.., N, A) makes stochastic ones."""
        del normal  # a deterministic policy; SAC's is not
        tape = self._tape("act", self.actor, observation.shape[-2])
        return self._squash(torch.tanh(self.actor.forward(observation, tape)))

    def _fit_critics(
        self, data: Minibatch, target: Tensor, ahead: Ahead | None
    ) -> tuple[Any, Tensor, Tensor]:
        """Descend the critics' mean(weights · error²); the loss and the signed errors.

        With several critics the loss is the sum and the error (b,) the mean over them; the first's
        own (b, 1) comes last.
        """
        tape = self._tape("critic", self.critics[0], target.shape[-2])
        value = ahead.value if ahead else None
        losses, errors = [], []
        for critic, gradient in zip(self.critics, self.critic_gradients, strict=True):
            value = critic.forward(data.inputs, tape) if value is None else value
            error, slope, loss = self._kernels.judge(target, value, data.weights)
            critic.backward(slope, tape, into=gradient)
            losses.append(loss)
            errors.append(error)
            value = None
        self._step(self.critic_adam, "critic", "active")
        loss = sum(losses[1:], losses[0])
        mean = errors[0] if len(errors) == 1 else sum(errors[1:], errors[0]) / len(errors)
        return loss, mean.squeeze(-1), errors[0]

    def _policy_gradient_step(self, data: Minibatch, raw: Tensor) -> Any:
        """Climb the first critic's value of the actor's own actions; returns minus that value."""
        rows = data.inputs.shape[-2]
        actor_tape = self._tape("actor", self.actor, rows)
        tape = self._tape("critic", self.critics[0], rows)
        # in place of the replayed action, now used up
        tanh = self._kernels.squash(raw, self._centre, self._half, data.action)
        value = self.critics[0].forward(data.inputs, tape)
        downhill = torch.full_like(value, -1 / rows)
        gradient = self.critics[0].action_gradient(downhill, tape)
        gradient = self._kernels.unsquash(gradient, self._half, tanh)
        if self._penalty:
            gradient = gradient.add(raw, alpha=2 * self._penalty / rows)
        self.actor.backward(gradient, actor_tape, into=self.actor_gradient)
        self._step(self.actor_adam, "actor", "moving")
        return -self._mean(value)

    def _look_at_values(self, data: Minibatch, replayed: Tensor) -> Tensor:
        """The numbers of `Values`, (.., 6), of the networks as they are now."""
        critic = self.critics[0]
        tape = self._tape("critic", critic, replayed.shape[-2])
        action = self.choose(data.observation)
        data.action.copy_(action)
        own = critic.forward(data.inputs, tape).clone()
        spread = []
        for turn in range(PROBES):
            index = (torch.arange(own.shape[-2], device=self.device) + turn) % PROBES
            self._squash(self._probes[index], out=data.action)
            spread.append(critic.forward(data.inputs, tape).clone())
        deviation = torch.stack(spread).std(0)
        full = ((action - self._centre).abs() >= SATURATED * self._half).to(own.dtype)
        parts = (replayed.mean((-2, -1)), replayed.amax((-2, -1)), own.mean((-2, -1)))
        rest = (own.amax((-2, -1)), deviation.mean((-2, -1)), full.mean((-2, -1)))
        return torch.stack([*parts, *rest], -1)

    def _follow(self) -> None:
        """Move the targets their share of the way to the parameters."""
        moving = self.control.get("moving")
        self._kernels.follow(self._followers, self._followed, self._tau, moving)

    def _step(self, adam: Adam, name: str, active: str) -> None:
        if self.stacked:
            rate, correction = self.control[f"{name}_rate"], self.control[f"{name}_correction"]
            adam.step_stack(rate, correction, self.control[active])
        else:
            adam.step()

    def _note_actor_loss(self, loss: Any) -> None:
        if self.stacked:
            self._kernels.note(self.actor_loss, loss, self.control["moving"])
        else:
            self.actor_loss = loss

    def _mean(self, values: Tensor) -> Any:
        return values.mean((-2, -1)) if self.stacked else values.mean().item()

    def _squash(self, tanh: Tensor, out: Tensor | None = None) -> Tensor:
        """From [-1, 1] to the bounds."""
        return torch.addcmul(self._centre, self._half, tanh, out=out)

    def _target_tape(self, name: str, network: Any, rows: int) -> Any:
        """The tape of that name on the way to the targets.

        Only a stack has one of its own there, for what it looks at ahead; one agent alone stays in
        its cache.
        """
        return self._tape(f"target {name}" if self.stacked else name, network, rows)

    def _tape(self, name: str, network: Any, rows: int) -> Any:
        """The tape of that name, made anew only when the number of rows changes.

        A stack keeps those of other numbers of rows: captured graphs go on using them.
        """
        name = f"{name} {rows}" if self.stacked else name
        known = self._tapes.get(name)
        if known is None or known[0] != rows:
            known = self._tapes[name] = rows, network.tape((*self._lead, rows))
        return known[1]

    def _per_agent(self, values: Any, rank: int = 2) -> Tensor:
        """Numbers (G, n) of each agent: (n,), or in a stack (G, 1, n), or (G, n) at rank 1."""
        tensor = torch.tensor(np.array(values, np.float32)).to(self.device)
        if not self.stacked:
            return tensor[0]
        return tensor.unsqueeze(1) if rank == 2 else tensor

    # --- state ------------------------------------------------------------------------------

    def state_dict(self, slot: int = 0) -> dict[str, Any]:
        """Networks, targets and optimisers of one agent."""
        return {
            "parameters": self._of(self.parameters, slot).cpu().clone(),
            "targets": self._of(self.targets, slot).cpu().clone(),
            "actor_adam": self.actor_adam.state_dict(slot),
            "critic_adam": self.critic_adam.state_dict(slot),
            "updates": int(self.updates[slot]),
            "actor_loss": float(self.actor_loss[slot] if self.stacked else self.actor_loss),
            "reward_range": self.bounds.seen[slot].copy(),
        }

    def load_state_dict(self, state: dict[str, Any], slot: int = 0) -> None:
        """Continue one agent from `state_dict()`."""
        for name, array in (("parameters", self.parameters), ("targets", self.targets)):
            saved, vector = as_tensor(state[name]), self._of(array, slot)
            if saved.shape != vector.shape:
                raise ValueError(
                    f"state[{name!r}] has {saved.numel()} numbers, this agent {vector.numel()}"
                )
            vector.copy_(saved)
        self.actor_adam.load_state_dict(state["actor_adam"], slot)
        self.critic_adam.load_state_dict(state["critic_adam"], slot)
        self.updates[slot] = int(state["updates"])
        if self.stacked:
            self.actor_loss[slot] = float(state["actor_loss"])
        else:
            self.actor_loss = float(state["actor_loss"])
        self.bounds.seen[slot] = state["reward_range"]

    def _of(self, array: Tensor, slot: int) -> Tensor:
        return array[slot] if self.stacked else array
