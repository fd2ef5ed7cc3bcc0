"""What the three agents share: bounds, acting, exploring, learning from a batch, saving."""

import threading
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from lser import files
from lser.agents.bounds import Box, action_bounds, checked_observation
from lser.agents.kernels import PLAIN, STACKED
from lser.agents.learner import Learner, Member
from lser.agents.minibatch import HostBatches, Minibatch, minibatch, plan_numbers
from lser.agents.noise import Noise, WeightNoise
from lser.agents.normaliser import Normaliser
from lser.agents.params import ActorCriticParams, NoisyParams
from lser.agents.perceptron import as_tensor
from lser.agents.protocol import Learned, Values
from lser.checks import check_count, check_size
from lser.params import make_params
from lser.types import Batch, Bool, Float32


class ActorCritic:
    """An agent: a learner of its own, exploration noise, and the bounds of its actions.

    Its methods may be called from several threads; a lock lets in one at a time.
    """

    Params: ClassVar[type] = ActorCriticParams
    learner_type: ClassVar[type[Learner]]

    def __init__(
        self,
        observation_dim: int,
        action_low: ArrayLike | Box,
        action_high: ArrayLike | None = None,
        *,
        params: Any = None,
        seed: int = 0,
        **overrides: Any,
    ) -> None:
        """Act in the bounds `action_low` and `action_high`, or in the Box given for the first.

        Knobs are those of `Params`: an object of it, single ones by name, or both. Networks,
        noise and draws all come from `seed`.
        """
        observation_dim = check_size("observation_dim", observation_dim)
        seed = check_count("seed", seed, low=0)
        self.params = make_params(self.Params, params, overrides)
        self._low, self._high = action_bounds(action_low, action_high)
        self._range = (self._high - self._low) / 2  # noise is in these units
        self.observation_dim, self.action_dim = observation_dim, len(self._low)
        self.device = _device(self.params.device)
        self.member = Member(self.params, self._low, self._high)
        kernels = PLAIN if self.device.type == "cpu" else STACKED
        self.learner = self.learner_type(
            observation_dim, [self.member], device=self.device, kernels=kernels
        )
        weights_rng, noise_rng, torch_rng = np.random.default_rng(seed).spawn(3)
        self.learner.initialise(torch.Generator().manual_seed(int(weights_rng.integers(2**63))))
        self.generator = torch.Generator().manual_seed(int(torch_rng.integers(2**63)))
        self._noise = _noise(self.action_dim, self.params, noise_rng)
        self._weight_noise = _weight_noise(observation_dim, self.action_dim, self.params, noise_rng)
        normalise = self.params.normalise
        self.normaliser = Normaliser(observation_dim) if normalise else None
        self._exploring = True
        self._buffers: tuple[int, HostBatches, Minibatch] | None = None
        self._lock = threading.RLock()

    def act(self, observation: Float32, *, explore: bool = False) -> Float32:
        """Actions (N, A) within the Box bounds for observations (N, O)."""
        observation = checked_observation(observation, self.observation_dim)
        with self._lock, torch.inference_mode():
            explore = explore and self._exploring
            if self.normaliser is not None:
                observation = self.look(observation) if explore else self.normaliser(observation)
            inputs = torch.tensor(observation, dtype=torch.float32)
            normal = self.draw_to_act(len(inputs)) if explore else None
            action = self._stack(self.learner.choose)(inputs, normal).cpu().numpy()
            return self.perturb(action, observation) if explore else self._bounded(action)

    def look(self, observation: Float32) -> Float32:
        """Observations (N, O) as the actor reads them, taken into the moments while exploring."""
        if self.normaliser is None:
            return observation
        if self._exploring:
            self.normaliser.see(observation)
        return self.normaliser(observation)

    def draw_to_act(self, rows: int) -> Tensor | None:
        """The normal draws (rows, A) of a stochastic policy's next actions, if it is one."""
        if not (self.learner.normals_to_act and self._exploring):
            return None
        shape = (self.action_dim, rows)  # transposed in memory like the networks' outputs
        return torch.randn(shape, generator=self.generator).t()

    def perturb(self, action: Float32, observation: Float32) -> Float32:
        """Add the next exploration noise to actions (N, A), in place, and bound them.

        `observation` (N, O) is what the actor read.
        """
        if self._exploring and self._noise is not None:
            action += self._range * self._noise.sample(len(action))
        if self._exploring and self._weight_noise is not None:
            action += self._range * self._weight_noise.sample(observation)
        return self._bounded(action)

    def _bounded(self, action: Float32) -> Float32:
        return action.clip(self._low, self._high, out=np.empty(action.shape, np.float32))

    def end_sessions(self, done: Bool) -> None:
        """Forget the exploration noise of the streams in `done` (N,), whose session ended."""
        with self._lock:
            if self._noise is not None and self.params.noise_reset:
                self._noise.reset(done)
            if self._weight_noise is not None:
                self._weight_noise.reset(done)

    @property
    def exploring(self) -> bool:
        """Whether `explore=True` still explores."""
        return self._exploring

    def stop_exploring(self) -> None:
        """From now on `explore=True` acts like `explore=False`."""
        self._exploring = False

    def learn(self, batch: Batch) -> Learned:
        """One gradient update of critic and actor, and of the target networks."""
        with self._lock, torch.inference_mode():
            host, data = self._room(len(batch.reward))
            self.stage(batch, host)
            learner = self.learner
            if learner.stacked:
                return self._learn_on_device(host, data)
            found = learner.update_alone(data, host.rewards[0])
            return self._learned(found.critic_loss, found.errors.numpy(), found.values)

    def stage(self, batch: Batch, host: HostBatches, slot: int = 0) -> None:
        """Copy a batch, normalised where that is asked for, to where the learner reads it."""
        if self.normaliser is not None:
            observation, after = map(self.normaliser, (batch.observation, batch.next_observation))
            batch = batch._replace(observation=observation, next_observation=after)
        host.fill(batch, self.params.discount, self.generator, slot)

    def _room(self, rows: int) -> tuple[HostBatches, Minibatch]:
        if self._buffers is None or self._buffers[0] != rows:
            shape = self.learner.batch_shape(rows)
            host = HostBatches(shape, torch.zeros(shape.floats))
            self._buffers = rows, host, minibatch(shape, host.buffer)
        return self._buffers[1:]

    def _learn_on_device(self, host: HostBatches, data: Minibatch) -> Learned:
        learner = self.learner
        plan = learner.plan(np.ones(1, np.bool_), host.rewards, host.numbers)
        buffer = host.buffer.to(self.device)
        learner.set_control(plan_numbers(host.shape, buffer))
        data = minibatch(host.shape, buffer)
        found = learner.update(data, actor=plan.actor, diagnose=plan.diagnose)
        values = None if found.values is None else found.values[0]
        return self._learned(float(found.critic_loss), found.errors[0].cpu().numpy(), values)

    def _learned(self, loss: float, errors: Float32, values: Tensor | None) -> Learned:
        seen = None if values is None else self.values(values.tolist())
        return Learned(self._losses(loss), errors, seen)

    def values(self, numbers: Sequence[float]) -> Values:
        """The learner's six numbers, with what the rewards seen so far allow."""
        return Values._make([*numbers, *self.learner.bounds.allowed()])

    def _losses(self, critic_loss: float) -> dict[str, float]:
        return {"critic": critic_loss, "actor": float(self.learner.actor_loss)}

    def _stack(self, function: Any) -> Any:
        """`function` of tensors, on the device and with a leading axis if the learner has one."""
        if not self.learner.stacked:
            return function

        def lifted(*tensors: Tensor | None) -> Tensor:
            given = [None if t is None else t.to(self.device).unsqueeze(0) for t in tensors]
            result: Tensor = function(*given)[0]
            return result

        return lifted

    def save(self, path: str | Path) -> None:
        """Write the agent to one file, which `lser.load_agent` reads; never pickle."""
        arrays: dict[str, Any] = {}
        config = {
            "observation_dim": self.observation_dim,
            "params": asdict(self.params),
            "state": files.flatten(self.state_dict(), arrays, "state"),
        }
        arrays |= {"action_low": self._low, "action_high": self._high}
        files.save(path, type(self).__name__, files.State(config, arrays))

    def state_dict(self) -> dict[str, Any]:
        """Networks, optimisers, noise and rngs as nested dicts of tensors, arrays and numbers."""
        with self._lock:
            found = self.learner.state_dict() | {
                "noise": self._noise.state_dict() if self._noise else {},
                "generator": self.generator.get_state(),
                "normaliser": self.normaliser.state_dict() if self.normaliser else {},
                "exploring": self._exploring,
            }
            if self._weight_noise is not None:
                found["weight_noise"] = self._weight_noise.state_dict()
            return found

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly from `state_dict()` of an agent built with the same arguments."""
        with self._lock:
            self.learner.load_state_dict(state)
            if self._noise is not None:
                self._noise.load_state_dict(state["noise"])
            if self._weight_noise is not None:
                self._weight_noise.load_state_dict(state["weight_noise"])
            self.generator.set_state(as_tensor(state["generator"]))
            if self.normaliser is not None:
                self.normaliser.load_state_dict(state["normaliser"])
            self._exploring = bool(state["exploring"])


def _noise(actions: int, params: ActorCriticParams, rng: np.random.Generator) -> Noise | None:
    if not isinstance(params, NoisyParams):
        return None
    return Noise(actions, params.noise_theta, params.noise_sigma, params.noise_scale, rng=rng)


def _weight_noise(
    observations: int, actions: int, params: ActorCriticParams, rng: np.random.Generator
) -> WeightNoise | None:
    if not isinstance(params, NoisyParams) or not params.weight_noise:
        return None
    (own,) = rng.spawn(1)  # the other noise draws what it would draw alone
    return WeightNoise(observations, actions, params.weight_noise, rng=own)


def _device(name: str) -> torch.device:
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ValueError(f"device must name a torch device, got {name!r}: {error}") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device {name!r} is not available: torch finds no CUDA device here")
    return device
