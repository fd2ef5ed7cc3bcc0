"""Twin delayed DDPG (Fujimoto et al., 2018): three remedies for DDPG's overestimation."""

from collections.abc import Sequence
from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from lser.agents.actor_critic import ActorCritic
from lser.agents.base import Learned
from lser.agents.box import Box
from lser.agents.staging import Minibatch
from lser.types import Batch


class TD3(ActorCritic):
    """DDPG with the lower of two critics, a smoothed target action, and a slower actor."""

    def __init__(
        self,
        observation_dim: int,
        action_low: ArrayLike | Box,
        action_high: ArrayLike | None = None,
        *,
        hidden: Sequence[int] = (128, 128),
        actor_lr: float = 1e-3,
        critic_lr: float = 1e-3,
        discount: float = 0.99,
        tau: float = 0.005,
        noise_theta: float = 1.0,
        noise_sigma: float = 1.0,
        noise_scale: float = 0.1,
        delay: int = 2,
        smoothing: float = 0.2,
        smoothing_clip: float = 0.5,
        normalise: bool = False,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        """Act in the bounds `action_low` and `action_high`, or in the Box given for the first.

        Every noise is in units of half the bounds' range. Exploration is white at `noise_theta` 1
        and Ornstein-Uhlenbeck below; `smoothing` is the deviation of the target action's noise,
        and the actor and the targets move at every `delay`-th update.
        """
        if delay < 1:
            raise ValueError(f"delay must be at least 1, got {delay}")
        for name, value in (("smoothing", smoothing), ("smoothing_clip", smoothing_clip)):
            if value < 0:
                raise ValueError(f"{name} must not be negative, got {value}")
        super().__init__(
            observation_dim,
            action_low,
            action_high,
            critics=2,
            outputs_per_action=1,
            hidden=hidden,
            actor_lr=actor_lr,
            critic_lr=critic_lr,
            discount=discount,
            tau=tau,
            noise=(noise_theta, noise_sigma, noise_scale),
            normalise=normalise,
            seed=seed,
            device=device,
        )
        self.delay, self.smoothing, self.smoothing_clip = delay, smoothing, smoothing_clip
        self._updates = 0
        self._actor_loss = 0.0

    @torch.inference_mode()
    def learn(self, batch: Batch) -> Learned:
        """One step of both critics; at every `delay`-th, one of the actor and the targets."""
        data = self._load(batch)
        critic_loss, errors = self._fit_critics(data, self._target(data))
        self._updates += 1
        if self._updates % self.delay == 0:
            self._actor_loss = self._climb(data)
            self.targets.lerp_(self.parameters, self.tau)
        return Learned({"critic": critic_loss, "actor": self._actor_loss}, errors.cpu().numpy())

    def _target(self, data: Minibatch) -> Tensor:
        """r + γ (1 - terminated) min Q'(s', clip(π'(s') + clipped noise)), (b, 1)."""
        rows = len(data.reward)
        raw = self.target_actor.forward(data.next_observation, self._tape("actor", rows))
        noise = self._normal(rows).mul_(self.smoothing)
        noise.clamp_(-self.smoothing_clip, self.smoothing_clip)
        self._squash(torch.tanh(raw).add_(noise).clamp_(-1.0, 1.0), out=data.next_action)
        tape = self._tape("critic", rows)
        first, second = (critic.forward(data.next_inputs, tape) for critic in self.target_critics)
        return torch.addcmul(data.reward, data.discount, torch.minimum(first, second))

    def state_dict(self) -> dict[str, Any]:
        """As every agent's, and where in the delay it stands."""
        progress = {"updates": self._updates, "actor_loss": self._actor_loss}
        return super().state_dict() | progress

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly from `state_dict()` of an agent built with the same arguments."""
        super().load_state_dict(state)
        self._updates = int(state["updates"])
        self._actor_loss = float(state["actor_loss"])
