"""Soft actor-critic (Haarnoja et al., 2018) with an automatic temperature."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn.functional import softplus

from lser.agents.actor_critic import ActorCritic
from lser.agents.base import Learned
from lser.agents.box import Box
from lser.agents.networks import as_tensor
from lser.agents.optim import Adam
from lser.agents.staging import Minibatch
from lser.types import Batch

LOG_DEVIATION = (-20.0, 2.0)  # bounds of the logarithm of the policy's deviation
HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)


class Drawn(NamedTuple):
    """Actions drawn from the policy, and what their gradient needs."""

    tanh: Tensor  # (b, A) the action in [-1, 1]
    log_density: Tensor  # (b, 1)
    spread: Tensor  # (b, A) what the draw added to the mean: deviation times a standard normal
    free: Tensor  # (b, A) bool, where the deviation is within its bounds


class SAC(ActorCritic):
    """A stochastic actor that trades the lower of two critics against its own entropy."""

    def __init__(
        self,
        observation_dim: int,
        action_low: ArrayLike | Box,
        action_high: ArrayLike | None = None,
        *,
        hidden: Sequence[int] = (128, 128),
        actor_lr: float = 3e-4,
        critic_lr: float = 3e-4,
        discount: float = 0.99,
        tau: float = 0.005,
        temperature: float = 1.0,
        temperature_lr: float = 3e-4,
        target_entropy: float | None = None,
        normalise: bool = False,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        """Act in the bounds `action_low` and `action_high`, or in the Box given for the first.

        The policy is stochastic, so exploration needs no noise. The entropy is that of the action
        in units of half the bounds' range; its target is minus the action's dimension by default.
        """
        for name, value in (("temperature", temperature), ("temperature_lr", temperature_lr)):
            if not 0 < value < math.inf:
                raise ValueError(f"{name} must be positive, got {value}")
        super().__init__(
            observation_dim,
            action_low,
            action_high,
            critics=2,
            outputs_per_action=2,
            hidden=hidden,
            actor_lr=actor_lr,
            critic_lr=critic_lr,
            discount=discount,
            tau=tau,
            noise=None,
            normalise=normalise,
            seed=seed,
            device=device,
        )
        self.target_entropy = -self.action_dim if target_entropy is None else target_entropy
        self._log_temperature = torch.full((1,), math.log(temperature), device=self.device)
        self._temperature_gradient = torch.zeros_like(self._log_temperature)
        self._temperature_adam = Adam(
            self._log_temperature, self._temperature_gradient, rate=temperature_lr
        )
        split = len(self.actor.vector)  # the targets of the critics are in use, the actor's is not
        self._critic_parameters = self.parameters[split:]
        self._critic_targets = self.targets[split:]

    @torch.inference_mode()
    def learn(self, batch: Batch) -> Learned:
        """One step of both critics, the actor, the temperature and the critics' targets."""
        data = self._load(batch)
        temperature = math.exp(self._log_temperature.item())
        critic_loss, errors = self._fit_critics(data, self._target(data, temperature))
        actor_loss = self._improve_actor(data, temperature)
        self._critic_targets.lerp_(self._critic_parameters, self.tau)
        losses = {"critic": critic_loss, "actor": actor_loss, "temperature": temperature}
        return Learned(losses, errors.cpu().numpy())

    def _target(self, data: Minibatch, temperature: float) -> Tensor:
        """r + γ (1 - terminated) (min Q'(s', a') - temperature · log π(a'|s')), (b, 1)."""
        rows = len(data.reward)
        tape = self._tape("critic", rows)
        drawn = self._draw(self.actor.forward(data.next_observation, self._tape("actor", rows)))
        self._squash(drawn.tanh, out=data.next_action)
        first, second = (critic.forward(data.next_inputs, tape) for critic in self.target_critics)
        value = torch.minimum(first, second).sub_(drawn.log_density, alpha=temperature)
        return torch.addcmul(data.reward, data.discount, value)

    def _improve_actor(self, data: Minibatch, temperature: float) -> float:
        """Descend mean(temperature · log π(a|s) - min Q(s, a)), then adapt the temperature."""
        rows = len(data.inputs)
        actor_tape = self._tape("actor", rows)
        drawn = self._draw(self.actor.forward(data.observation, actor_tape))
        self._squash(drawn.tanh, out=data.action)
        tapes = self._tape("critic", rows), self._tape("second critic", rows)
        first, second = (
            critic.forward(data.inputs, tape)
            for critic, tape in zip(self.critics, tapes, strict=True)
        )
        lower = (first < second).to(first.dtype).mul_(-1 / rows)  # (b, 1), the first critic's share
        downhill = sum(
            critic.input_gradient(share, tape, first=self.observation_dim)
            for critic, tape, share in zip(
                self.critics, tapes, (lower, -1 / rows - lower), strict=True
            )
        )
        # Through tanh, where d log π / d tanh⁻¹(a) = 2 a; the deviation also enters log π directly.
        mean = torch.ops.aten.tanh_backward(downhill * self._half, drawn.tanh)
        mean.add_(drawn.tanh, alpha=2 * temperature / rows)
        deviation = (mean * drawn.spread).sub_(temperature / rows).mul_(drawn.free)
        self.actor.backward(torch.cat((mean, deviation), 1), actor_tape, into=self.actor_gradient)
        self._actor_adam.step()

        log_density = drawn.log_density.mean()
        self._temperature_gradient.copy_(-(log_density + self.target_entropy))
        self._temperature_adam.step()
        return float(temperature * log_density - torch.minimum(first, second).mean())

    def _draw(self, raw: Tensor) -> Drawn:
        """A squashed Gaussian action from the actor's outputs: means, then log deviations."""
        mean, log_deviation = torch.split(raw, self.action_dim, 1)
        bounded = log_deviation.clamp(*LOG_DEVIATION)
        normal = self._normal(len(raw))
        spread = bounded.exp().mul_(normal)
        before = mean + spread
        # log(1 - tanh²(x)) = 2 (log 2 - x - softplus(-2 x)), without cancellation
        squeeze = 2 * (math.log(2) - before - softplus(-2 * before))
        log_density = -(0.5 * normal * normal + bounded + HALF_LOG_TAU + squeeze)
        return Drawn(
            torch.tanh(before),
            log_density.sum(1, keepdim=True),
            spread,
            bounded == log_deviation,
        )

    def _choose(self, observation: Tensor, *, explore: bool) -> Tensor:
        """A draw from the policy, or its mean."""
        raw = self.actor.forward(observation, self._tape("act", len(observation)))
        tanh = self._draw(raw).tanh if explore else torch.tanh(raw[:, : self.action_dim])
        return self._squash(tanh)

    def state_dict(self) -> dict[str, Any]:
        """As every agent's, and the temperature with its optimiser."""
        return super().state_dict() | {
            "log_temperature": self._log_temperature.clone(),
            "temperature_adam": self._temperature_adam.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly from `state_dict()` of an agent built with the same arguments."""
        super().load_state_dict(state)
        self._log_temperature.copy_(as_tensor(state["log_temperature"]))
        self._temperature_adam.load_state_dict(state["temperature_adam"])
