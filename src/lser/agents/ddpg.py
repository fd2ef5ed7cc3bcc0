"""Deep deterministic policy gradient (Lillicrap et al., 2016), the paper's backbone."""

from collections.abc import Sequence

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from lser.agents.actor_critic import ActorCritic
from lser.agents.base import Learned
from lser.agents.box import Box
from lser.agents.staging import Minibatch
from lser.types import Batch


class DDPG(ActorCritic):
    """One critic, one actor that climbs it, and slowly following target copies of both."""

    def __init__(
        self,
        observation_dim: int,
        action_low: ArrayLike | Box,
        action_high: ArrayLike | None = None,
        *,
        hidden: Sequence[int] = (128, 128),
        actor_lr: float = 1e-4,
        critic_lr: float = 1e-3,
        discount: float = 0.99,
        tau: float = 0.001,
        noise_theta: float = 0.15,
        noise_sigma: float = 0.2,
        noise_scale: float = 0.1,
        normalise: bool = False,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        """Act in the bounds `action_low` and `action_high`, or in the Box given for the first.

        The Ornstein-Uhlenbeck noise is in units of half the bounds' range.
        """
        super().__init__(
            observation_dim,
            action_low,
            action_high,
            critics=1,
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

    @torch.inference_mode()
    def learn(self, batch: Batch) -> Learned:
        """One step of the critic, one of the actor, and one of the targets towards them."""
        data = self._load(batch)
        critic_loss, errors = self._fit_critics(data, self._target(data))
        actor_loss = self._climb(data)
        self.targets.lerp_(self.parameters, self.tau)
        return Learned({"critic": critic_loss, "actor": actor_loss}, errors.cpu().numpy())

    def _target(self, data: Minibatch) -> Tensor:
        """r + γ (1 - terminated) Q'(s', π'(s')), (b, 1)."""
        rows = len(data.reward)
        raw = self.target_actor.forward(data.next_observation, self._tape("actor", rows))
        self._squash(torch.tanh(raw), out=data.next_action)
        value = self.target_critics[0].forward(data.next_inputs, self._tape("critic", rows))
        return torch.addcmul(data.reward, data.discount, value)
