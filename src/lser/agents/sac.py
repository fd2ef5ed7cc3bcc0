"""Soft actor-critic (Haarnoja et al., 2018) with an automatic temperature."""

import math
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import softplus

from lser.agents.actor_critic import ActorCritic
from lser.agents.adam import Adam
from lser.agents.kernels import PLAIN, Kernels
from lser.agents.learner import Learner, Plan
from lser.agents.minibatch import Minibatch
from lser.agents.params import SACParams
from lser.agents.perceptron import as_tensor
from lser.types import Bool, Float32

LOG_DEVIATION = (-20.0, 2.0)  # bounds of the logarithm of the policy's deviation
HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)


class Drawn(NamedTuple):
    """Actions drawn from the policy, and what their gradient needs."""

    mean: Tensor  # (.., b, A) before tanh
    tanh: Tensor  # (.., b, A) the action in [-1, 1]
    log_density: Tensor  # (.., b, 1)
    spread: Tensor  # (.., b, A) what the draw added to the mean: deviation times a standard normal
    free: Tensor  # (.., b, A) bool, where the deviation is within its bounds


class SACLearner(Learner):
    """A stochastic actor that trades the lower of two critics against its own entropy."""

    critic_count: ClassVar[int] = 2
    outputs_per_action: ClassVar[int] = 2
    normals: ClassVar[int] = 2
    normals_to_act: ClassVar[int] = 1
    numbers: ClassVar[tuple[str, ...]] = (
        *Learner.numbers,
        "temperature_rate",
        "temperature_correction",
    )

    def __init__(self, *arguments: Any, kernels: Kernels = PLAIN, **options: Any) -> None:
        """As every learner, and a temperature."""
        super().__init__(*arguments, kernels=kernels, **options)
        params = [member.params for member in self.members]
        entropies = [
            -self.action_dim if p.target_entropy is None else p.target_entropy for p in params
        ]
        starts = [[math.log(p.temperature)] for p in params]
        self._target_entropy: Any = (
            self._per_agent([[e] for e in entropies], 1) if self.stacked else entropies[0]
        )
        self.log_temperature = self._per_agent(starts, 1)  # (1,), or (G, 1)
        self._temperature_gradient = torch.zeros_like(self.log_temperature)
        rates = [p.temperature_lr for p in params]
        self.temperature_adam = Adam(
            self.log_temperature, self._temperature_gradient, rates, kernels
        )
        self.temperature: Any = 1.0  # of the update under way: a float, or (G, 1, 1)
        critics = slice(self.split, None)  # the actor's target is not in use
        self._followers = self.targets[..., critics]
        self._followed = self.parameters[..., critics]

    def plan(self, active: Bool, rewards: Float32, numbers: Float32) -> Plan:
        """As every learner's, and the temperature's numbers behind them."""
        self.temperature_adam.plan(active, numbers[len(Learner.numbers) :])
        return super().plan(active, rewards, numbers)

    def _target(self, data: Minibatch) -> Tensor:
        """r + γ (1 - terminated) (min Q'(s', a') - temperature · log π(a'|s')), (.., b, 1)."""
        if self.stacked:
            self.temperature = self.log_temperature.exp().unsqueeze(-1)
        else:
            self.temperature = math.exp(self.log_temperature.item())
        rows = data.reward.shape[-2]
        actor_tape = self._target_tape("actor", self.actor, rows)
        tape = self._target_tape("critic", self.critics[0], rows)
        drawn = self._draw(self.actor.forward(data.next_observation, actor_tape), data.normals[0])
        self._squash(drawn.tanh, out=data.next_action)
        first, second = (critic.forward(data.next_inputs, tape) for critic in self.target_critics)
        value = self._plus(torch.minimum(first, second), -self.temperature, drawn.log_density)
        return torch.addcmul(data.reward, data.discount, value)

    def _improve(self, data: Minibatch, raw: Tensor) -> Any:
        """Descend mean(temperature · log π(a|s) - min Q(s, a)), then adapt the temperature."""
        rows, temperature = data.inputs.shape[-2], self.temperature
        actor_tape = self._tape("actor", self.actor, rows)
        drawn = self._draw(raw, data.normals[1])
        self._squash(drawn.tanh, out=data.action)
        tapes = [self._tape(n, self.critics[0], rows) for n in ("critic", "second critic")]
        first, second = (
            critic.forward(data.inputs, tape)
            for critic, tape in zip(self.critics, tapes, strict=True)
        )
        lower = (first < second).to(first.dtype).mul_(-1 / rows)  # (b, 1), the first critic's share
        downhill = sum(
            critic.action_gradient(share, tape)
            for critic, tape, share in zip(
                self.critics, tapes, (lower, -1 / rows - lower), strict=True
            )
        )
        # Through tanh, where d log π / d tanh⁻¹(a) = 2 a; the deviation also enters log π directly.
        mean = torch.ops.aten.tanh_backward(downhill * self._half, drawn.tanh)
        mean = self._plus(mean, 2 * temperature / rows, drawn.tanh)
        deviation = (mean * drawn.spread).sub_(temperature / rows).mul_(drawn.free)
        if self._penalty:
            mean = mean.add(drawn.mean, alpha=2 * self._penalty / rows)
        gradient = torch.cat((mean, deviation), -1)
        self.actor.backward(gradient, actor_tape, into=self.actor_gradient)
        self._step(self.actor_adam, "actor", "moving")

        log_density = drawn.log_density.mean((-2, -1))
        self._temperature_gradient.copy_(-(log_density.unsqueeze(-1) + self._target_entropy))
        self._step(self.temperature_adam, "temperature", "active")
        value = torch.minimum(first, second).mean((-2, -1))
        if self.stacked:
            return temperature.view(-1) * log_density - value
        return float(temperature * log_density - value)

    def _plus(self, values: Tensor, factor: Any, others: Tensor) -> Tensor:
        """values + factor · others, in one operation where the factor is a number."""
        return values + factor * others if self.stacked else values.add_(others, alpha=factor)

    def _draw(self, raw: Tensor, normal: Tensor) -> Drawn:
        """A squashed Gaussian action from the actor's outputs: means, then log deviations."""
        mean, log_deviation = torch.split(raw, self.action_dim, -1)
        bounded = log_deviation.clamp(*LOG_DEVIATION)
        spread = bounded.exp().mul_(normal)
        before = mean + spread
        # log(1 - tanh²(x)) = 2 (log 2 - x - softplus(-2 x)), without cancellation
        squeeze = 2 * (math.log(2) - before - softplus(-2 * before))
        log_density = -(0.5 * normal * normal + bounded + HALF_LOG_TAU + squeeze)
        return Drawn(
            mean,
            torch.tanh(before),
            log_density.sum(-1, keepdim=True),
            spread,
            bounded == log_deviation,
        )

    def choose(self, observation: Tensor, normal: Tensor | None = None) -> Tensor:
        """A draw from the policy where a `normal` one is given, or its mean."""
        raw = self.actor.forward(observation, self._tape("act", self.actor, observation.shape[-2]))
        if normal is not None:
            return self._squash(self._draw(raw, normal).tanh)
        return self._squash(torch.tanh(raw[..., : self.action_dim]))

    def state_dict(self, slot: int = 0) -> dict[str, Any]:
        """As every learner's, and the temperature with its optimiser."""
        return super().state_dict(slot) | {
            "log_temperature": self._of(self.log_temperature, slot).cpu().clone(),
            "temperature_adam": self.temperature_adam.state_dict(slot),
        }

    def load_state_dict(self, state: dict[str, Any], slot: int = 0) -> None:
        """Continue one agent from `state_dict()`."""
        super().load_state_dict(state, slot)
        self._of(self.log_temperature, slot).copy_(as_tensor(state["log_temperature"]))
        self.temperature_adam.load_state_dict(state["temperature_adam"], slot)


class SAC(ActorCritic):
    """An agent that learns by soft actor-critic and explores by its own stochastic policy."""

    Params: ClassVar[type] = SACParams
    learner_type: ClassVar[type[Learner]] = SACLearner

    def _losses(self, critic_loss: float) -> dict[str, float]:
        assert isinstance(self.learner, SACLearner)
        temperature = float(self.learner.temperature)
        return super()._losses(critic_loss) | {"temperature": temperature}
