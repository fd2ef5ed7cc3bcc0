"""G learners on the CPU, one after another: side by side their arrays would leave the cache."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from lser.agents.acting import Answer
from lser.agents.minibatch import BatchShape, HostBatches, Minibatch, minibatch
from lser.agents.team import Found, Team
from lser.types import Bool, Float32, Float64


class Turns:
    """Learners on the CPU, one after another."""

    beside: ClassVar[bool] = False

    def __init__(self, team: Team, shape: BatchShape, buffers: Sequence[Tensor]) -> None:
        """Make a learner for every member."""
        self.batches = [HostBatches(shape, buffer) for buffer in buffers]
        self._data = [_unstacked(minibatch(shape, buffer)) for buffer in buffers]
        cpu = torch.device("cpu")
        self.learners = [
            team.learner_type(team.observation_dim, [member], device=cpu) for member in team.members
        ]
        count = len(team.members)
        errors, loss = np.zeros((count, shape.rows), np.float32), np.zeros(count, np.float32)
        self._found = Found(errors, loss)
        self._values = np.full((count, 8), np.nan)
        self.looked = False

    @torch.inference_mode()
    def launch(self, active: Sequence[Bool], first: int, *, errors: bool = True) -> None:
        """Update the agents in each of `active` (G,) on what lies in the buffers from `first`."""
        for turn, who in enumerate(active):
            self._update(who, first + turn)

    def _update(self, active: Bool, buffer: int) -> None:
        for slot in map(int, np.flatnonzero(active)):
            rewards = self.batches[buffer].rewards[slot]
            update = self.learners[slot].update_alone(self._data[buffer][slot], rewards)
            self._found.errors[slot] = update.errors.numpy()
            self._found.critic_loss[slot] = update.critic_loss
            if update.values is not None:
                self._values[slot] = *update.values.tolist(), *self.learners[slot].bounds.allowed()
                self.looked = True

    def ready(self) -> bool:
        """Always: updates are made at once."""
        return True

    def found(self) -> Found:
        """The result of the last update."""
        return self._found

    def take_values(self) -> Float64:
        """The numbers of `Values` (G, 8) looked at since the last call, NaN where none."""
        values, self._values = self._values, np.full_like(self._values, np.nan)
        self.looked = False
        return values

    @torch.inference_mode()
    def ask(self, observations: Float32, normals: Float32 | None = None) -> Answer:
        """Actions (G, N, A), before noise, for observations (G, N, O)."""
        chosen = []
        for slot, learner in enumerate(self.learners):
            normal = None if normals is None else torch.from_numpy(normals[slot]).t()
            chosen.append(learner.choose(torch.from_numpy(observations[slot]), normal).numpy())
        return Answer(np.stack(chosen), None)

    def actor(self, slot: int) -> Float32:
        """One agent's actor, (P,)."""
        found: Float32 = self.learners[slot].actor.vector.numpy().copy()
        return found

    def state(self, slot: int) -> dict[str, Any]:
        """One agent's learner, as its `state_dict`."""
        return self.learners[slot].state_dict()

    def load(self, slot: int, state: dict[str, Any]) -> None:
        """Continue one agent's learner from its `state_dict`."""
        self.learners[slot].load_state_dict(state)

    def close(self) -> None:
        """Nothing to let go of."""


def _unstacked(data: Minibatch) -> list[Minibatch]:
    """Views of every agent's part."""
    found = []
    for slot in range(len(data.reward)):
        fields: list[Any] = [field[slot] for field in data[:-1]]
        found.append(Minibatch._make([*fields, tuple(draw[slot] for draw in data.normals)]))
    return found
