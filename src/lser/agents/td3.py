"""Twin delayed DDPG (Fujimoto et al., 2018): three remedies for DDPG's overestimation."""

from typing import Any, ClassVar

import torch
from torch import Tensor

from lser.agents.actor_critic import ActorCritic
from lser.agents.learner import Learner
from lser.agents.minibatch import Minibatch
from lser.agents.params import TD3Params


class TD3Learner(Learner):
    """DDPG with the lower of two critics, a smoothed target action, and a slower actor."""

    critic_count: ClassVar[int] = 2
    normals: ClassVar[int] = 1

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """As every learner."""
        super().__init__(*arguments, **options)
        first = self.members[0].params
        self._smoothing, self._clip = first.smoothing, first.smoothing_clip

    def _target(self, data: Minibatch) -> Tensor:
        """r + γ (1 - terminated) min Q'(s', clip(π'(s') + clipped noise)), (.., b, 1)."""
        rows = data.reward.shape[-2]
        actor_tape = self._target_tape("actor", self.actor, rows)
        raw = self.target_actor.forward(data.next_observation, actor_tape)
        noise = (data.normals[0] * self._smoothing).clamp_(-self._clip, self._clip)
        self._squash(torch.tanh(raw).add_(noise).clamp_(-1.0, 1.0), out=data.next_action)
        tape = self._target_tape("critic", self.critics[0], rows)
        first, second = (critic.forward(data.next_inputs, tape) for critic in self.target_critics)
        return torch.addcmul(data.reward, data.discount, torch.minimum(first, second))

    def _improve(self, data: Minibatch, raw: Tensor) -> Any:
        return self._policy_gradient_step(data, raw)


class TD3(ActorCritic):
    """An agent that learns by twin delayed DDPG and explores by noise."""

    Params: ClassVar[type] = TD3Params
    learner_type: ClassVar[type[Learner]] = TD3Learner
