"""Deep deterministic policy gradient (Lillicrap et al., 2016), the paper's backbone."""

from collections.abc import Sequence

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from lser.agents.actor_critic import ActorCritic, Box
from lser.agents.base import Learned
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
        error, critic_loss = self._fit_critic(data)
        actor_loss = self._improve_actor(data)
        self.targets.lerp_(self.parameters, self.tau)
        return Learned({"critic": critic_loss, "actor": actor_loss}, error.cpu().numpy())

    def _fit_critic(self, data: Minibatch) -> tuple[Tensor, float]:
        """Descend mean(weights · error²); returns the signed errors (b,) and that loss."""
        rows = len(data.reward)
        raw = self.target_actor.forward(data.next_observation, self._tape("actor", rows))
        self._squash(torch.tanh(raw), out=data.next_action)
        tape = self._tape("critic", rows)
        next_value = self.target_critics[0].forward(data.next_inputs, tape)
        target = torch.addcmul(data.reward, data.discount, next_value)

        error = target - self.critics[0].forward(data.inputs, tape)
        weighted = data.weights * error
        self.critics[0].backward(weighted * (-2 / rows), tape, into=self.critic_gradients[0])
        self._critic_adam.step()
        return error.view(-1), torch.dot(weighted.view(-1), error.view(-1)).item() / rows

    def _improve_actor(self, data: Minibatch) -> float:
        """Climb the critic's value of the actor's own actions; returns minus that value."""
        rows = len(data.reward)
        actor_tape, tape = self._tape("actor", rows), self._tape("critic", rows)
        tanh = torch.tanh(self.actor.forward(data.observation, actor_tape))
        self._squash(tanh, out=data.action)  # in place of the replayed action, now used up
        value = self.critics[0].forward(data.inputs, tape)
        downhill = torch.full_like(value, -1 / rows)
        gradient = self.critics[0].input_gradient(downhill, tape, first=self.observation_dim)
        gradient = torch.ops.aten.tanh_backward(gradient * self._half, tanh)
        self.actor.backward(gradient, actor_tape, into=self.actor_gradient)
        self._actor_adam.step()
        return -value.mean().item()
