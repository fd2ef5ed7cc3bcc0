"""What the three agents share: bounds, acting, target networks, and exact saving and loading."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from lser.agents.box import Box, action_bounds
from lser.agents.networks import Tape, as_tensor, side_by_side
from lser.agents.noise import Noise
from lser.agents.normaliser import Normaliser
from lser.agents.optim import Adam
from lser.agents.staging import Minibatch, Staging
from lser.types import Batch, Bool, Float32


class ActorCritic:
    """An actor and its critics with target copies, side by side in three flat vectors.

    `parameters`, `targets` and `gradients` hold the networks in the order actor, critics, so that
    an optimiser step or a target update is one operation. A subclass adds `learn`, out of the
    steps `_fit_critics` and, for deterministic actors, `_climb`.
    """

    def __init__(
        self,
        observation_dim: int,
        action_low: ArrayLike | Box,
        action_high: ArrayLike | None,
        *,
        critics: int,
        outputs_per_action: int,
        hidden: Sequence[int],
        actor_lr: float,
        critic_lr: float,
        discount: float,
        tau: float,
        noise: tuple[float, float, float] | None,
        normalise: bool,
        seed: int,
        device: str,
    ) -> None:
        """Build networks, optimisers and noise (theta, sigma, scale), all drawn from `seed`."""
        _check(observation_dim, hidden, actor_lr, critic_lr, discount, tau)
        self._low, self._high = action_bounds(action_low, action_high)
        self.observation_dim, self.action_dim = observation_dim, len(self._low)
        self.discount, self.tau = discount, tau
        self.device = torch.device(device)
        self._centre = torch.from_numpy((self._high + self._low) / 2).to(self.device)
        self._range = (self._high - self._low) / 2  # noise is in these units
        self._half = torch.from_numpy(self._range).to(self.device)

        self._hidden = tuple(hidden)
        self._tapes: dict[str, Tape] = {}
        self._staging = Staging(0, observation_dim, self.action_dim, self.device)
        actor = (observation_dim, *hidden, outputs_per_action * self.action_dim)
        critic = (observation_dim + self.action_dim, *hidden, 1)
        sizes = [actor] + [critic] * critics
        self.parameters, self.actor, self.critics = side_by_side(sizes, self.device)
        self.targets, self.target_actor, self.target_critics = side_by_side(sizes, self.device)
        self.gradients, self.actor_gradient, self.critic_gradients = side_by_side(
            sizes, self.device
        )
        weights_rng, noise_rng, torch_rng = np.random.default_rng(seed).spawn(3)
        generator = torch.Generator().manual_seed(int(weights_rng.integers(2**63)))
        for network in (self.actor, *self.critics):
            network.initialise(generator)
        self.targets.copy_(self.parameters)

        split = len(self.actor.vector)  # where the critics start
        self._actor_adam = Adam(self.parameters[:split], self.gradients[:split], rate=actor_lr)
        self._critic_adam = Adam(self.parameters[split:], self.gradients[split:], rate=critic_lr)
        self._noise = Noise(self.action_dim, *noise, rng=noise_rng) if noise else None
        self._generator = torch.Generator(self.device).manual_seed(int(torch_rng.integers(2**63)))
        self._normaliser = Normaliser(observation_dim) if normalise else None
        self._exploring = True

    def act(self, observation: Float32, *, explore: bool = False) -> Float32:
        """Actions (N, A) within the Box bounds for observations (N, O)."""
        if observation.ndim != 2 or observation.shape[1] != self.observation_dim:
            expected = f"(N, {self.observation_dim})"
            raise ValueError(f"observation must have shape {expected}, got {observation.shape}")
        explore = explore and self._exploring
        if explore and self._normaliser is not None:
            self._normaliser.see(observation)
        if self._normaliser is not None:
            observation = self._normaliser(observation)
        with torch.inference_mode():
            inputs = torch.tensor(observation, dtype=torch.float32, device=self.device)
            action = self._choose(inputs, explore=explore).cpu().numpy()
        return self.perturb(action) if explore else self._bounded(action)

    def perturb(self, action: Float32) -> Float32:
        """Add the next exploration noise to actions (N, A), in place, and bound them."""
        if self._exploring and self._noise is not None:
            action += self._range * self._noise.sample(len(action))
        return self._bounded(action)

    def _bounded(self, action: Float32) -> Float32:
        return action.clip(self._low, self._high, out=np.empty(action.shape, np.float32))

    def end_sessions(self, done: Bool) -> None:
        """Forget the exploration noise of the streams in `done` (N,), whose session ended."""
        if self._noise is not None:
            self._noise.reset(done)

    def stop_exploring(self) -> None:
        """From now on `explore=True` acts like `explore=False`."""
        self._exploring = False

    def state_dict(self) -> dict[str, Any]:
        """Networks, optimisers, noise and rngs as nested dicts of tensors, arrays and numbers."""
        return {
            "parameters": self.parameters.clone(),
            "targets": self.targets.clone(),
            "actor_adam": self._actor_adam.state_dict(),
            "critic_adam": self._critic_adam.state_dict(),
            "noise": self._noise.state_dict() if self._noise else {},
            "generator": self._generator.get_state(),
            "normaliser": self._normaliser.state_dict() if self._normaliser else {},
            "exploring": self._exploring,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly from `state_dict()` of an agent built with the same arguments."""
        for name, vector in (("parameters", self.parameters), ("targets", self.targets)):
            saved = as_tensor(state[name])
            if saved.shape != vector.shape:
                raise ValueError(
                    f"state[{name!r}] has {saved.numel()} numbers, this agent {vector.numel()}"
                )
            vector.copy_(saved)
        self._actor_adam.load_state_dict(state["actor_adam"])
        self._critic_adam.load_state_dict(state["critic_adam"])
        if self._noise is not None:
            self._noise.load_state_dict(state["noise"])
        self._generator.set_state(as_tensor(state["generator"]))
        if self._normaliser is not None:
            self._normaliser.load_state_dict(state["normaliser"])
        self._exploring = bool(state["exploring"])

    def _fit_critics(self, data: Minibatch, target: Tensor) -> tuple[float, Tensor]:
        """Descend the critics' mean(weights · error²); returns the loss and the signed errors.

        With several critics the loss is the sum and the error (b,) the mean over them.
        """
        rows = len(target)
        tape = self._tape("critic", rows)
        loss, errors = 0.0, []
        for critic, gradient in zip(self.critics, self.critic_gradients, strict=True):
            error = target - critic.forward(data.inputs, tape)
            weighted = data.weights * error
            critic.backward(weighted * (-2 / rows), tape, into=gradient)
            loss += torch.dot(weighted.view(-1), error.view(-1)).item() / rows
            errors.append(error)
        self._critic_adam.step()
        mean = errors[0] if len(errors) == 1 else sum(errors[1:], errors[0]) / len(errors)
        return loss, mean.view(-1)

    def _climb(self, data: Minibatch) -> float:
        """Climb the first critic's value of the actor's own actions; returns minus that value."""
        rows = len(data.inputs)
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

    def _choose(self, observation: Tensor, *, explore: bool) -> Tensor:
        """Actions (N, A) on the device, before noise."""
        del explore  # a deterministic policy; SAC's is not
        raw = self.actor.forward(observation, self._tape("act", len(observation)))
        return self._squash(torch.tanh(raw))

    def _normal(self, rows: int) -> Tensor:
        """Standard normal draws (rows, A), transposed in memory like the networks' outputs."""
        shape = (self.action_dim, rows)
        return torch.randn(shape, generator=self._generator, device=self.device).t()

    def _squash(self, tanh: Tensor, out: Tensor | None = None) -> Tensor:
        """From [-1, 1] to the bounds."""
        return torch.addcmul(self._centre, self._half, tanh, out=out)

    def _tape(self, name: str, rows: int) -> Tape:
        """The tape of that name, made anew only when the number of rows changes."""
        tape = self._tapes.get(name)
        if tape is None or tape.rows != rows:
            tape = self._tapes[name] = Tape(self._hidden, rows, self.device)
        return tape

    def _load(self, batch: Batch) -> Minibatch:
        """The batch on the device."""
        if self._staging.rows != len(batch.reward):
            self._staging = Staging(
                len(batch.reward), self.observation_dim, self.action_dim, self.device
            )
        if self._normaliser is not None:
            observation, after = map(self._normaliser, (batch.observation, batch.next_observation))
            batch = batch._replace(observation=observation, next_observation=after)
        return self._staging.load(batch, self.discount)


def _check(
    observation_dim: int,
    hidden: Sequence[int],
    actor_lr: float,
    critic_lr: float,
    discount: float,
    tau: float,
) -> None:
    if observation_dim < 1:
        raise ValueError(f"observation_dim must be at least 1, got {observation_dim}")
    if not hidden or min(hidden) < 1:
        raise ValueError(f"hidden must name at least one positive width, got {hidden}")
    for name, rate in (("actor_lr", actor_lr), ("critic_lr", critic_lr)):
        if not 0 < rate < np.inf:
            raise ValueError(f"{name} must be positive, got {rate}")
    if not 0 <= discount <= 1:
        raise ValueError(f"discount must be in [0, 1], got {discount}")
    if not 0 < tau <= 1:
        raise ValueError(f"tau must be in (0, 1], got {tau}")
