"""Deep deterministic policy gradient (Lillicrap et al., 2016), the paper's backbone."""

from typing import Any, ClassVar

import torch
from torch import Tensor

from lser.agents.actor_critic import ActorCritic
from lser.agents.learner import Learner
from lser.agents.minibatch import Minibatch
from lser.agents.params import DDPGParams


class DDPGLearner(Learner):
    """One critic, one actor that climbs it, and slowly following target copies of both."""

    def _target(self, data: Minibatch) -> Tensor:
        """r + γ (1 - terminated) Q'(s', π'(s')), (.., b, 1)."""
        critic, rows = self.target_critics[0], data.reward.shape[-2]
        tape = self._target_tape("actor", self.actor, rows)
        raw = self.target_actor.forward(data.next_observation, tape)
        self._kernels.squash(raw, self._centre, self._half, data.next_action)
        value = critic.forward(data.next_inputs, self._target_tape("critic", critic, rows))
        return torch.addcmul(data.reward, data.discount, value)

    def _improve(self, data: Minibatch, raw: Tensor) -> Any:
        return self._policy_gradient_step(data, raw)


class DDPG(ActorCritic):
    """An agent that learns by deep deterministic policy gradient and explores by noise."""

    Params: ClassVar[type] = DDPGParams
    learner_type: ClassVar[type[Learner]] = DDPGLearner
