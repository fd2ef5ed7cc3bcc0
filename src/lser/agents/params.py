"""The knobs of every agent, as plain data: nothing heavy is imported here."""

from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal

from lser.checks import check_count, check_fields, check_number

Critic = Literal["joint", "late-action", "product"]
ValueBound = Literal["auto"] | tuple[float, float] | None


@dataclass(frozen=True, kw_only=True)
class ActorCriticParams:
    """What DDPG, TD3 and SAC have in common."""

    hidden: tuple[int, ...] = (128, 128)
    """Widths of the hidden layers of actor and critics."""
    actor_lr: float = 1e-3
    critic_lr: float = 1e-3
    discount: float = 0.99
    tau: float = 0.005
    """Share of the way the target networks move at each update."""
    critic: Critic = "joint"
    """Where the action enters: beside the observation, at the second layer (the release's), or in
    a tower of its own whose outputs multiply the observation's."""
    norm_gain: Literal["ones", "uniform"] = "ones"
    """How the gains of LayerNorm start: at 1, or drawn from U(0, 1) as in the release."""
    value_bound: ValueBound = None
    """Clip targets to these two numbers, or ("auto") to what the rewards seen so far allow."""
    preactivation_penalty: float = 0.0
    """Weight of the squared output before tanh in the actor's loss: against saturated actions."""
    diagnose_every: int = 200
    """Updates between two looks at the critic's values (0: never)."""
    normalise: bool = False
    """Standardise observations before they enter the networks."""
    device: str = "cpu"

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", _widths(self.hidden))
        check_fields(self)
        _positive(self, "actor_lr", "critic_lr")
        if not 0 <= self.discount <= 1:
            raise ValueError(f"discount must be in [0, 1], got {self.discount}")
        if not 0 < self.tau <= 1:
            raise ValueError(f"tau must be in (0, 1], got {self.tau}")
        if self.critic == "late-action" and len(self.hidden) < 2:
            raise ValueError(f"critic='late-action' needs two hidden layers, got {self.hidden}")
        check_count("diagnose_every", self.diagnose_every, low=0)
        _not_negative(self, "preactivation_penalty")
        if not isinstance(self.device, str):
            raise ValueError(f"device must name a torch device, got {self.device!r}")
        _check_bound(self.value_bound)


@dataclass(frozen=True, kw_only=True)
class NoisyParams(ActorCriticParams):
    """What DDPG and TD3 have in common: noise on a deterministic actor."""

    noise_theta: float = 1.0
    """Pull of the noise to 0 at every step: white at 1, Ornstein-Uhlenbeck below."""
    noise_sigma: float = 1.0
    noise_scale: float = 0.1
    """Scale of the noise, in units of half the action's range."""
    noise_reset: bool = True
    """Whether the noise of a stream returns to 0 when its session ends."""
    weight_noise: float = 0.0
    """Exploration in parameters: deviation, in units of half the action's range, of a random linear
    layer beside the actor that is drawn anew for every session."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.noise_theta <= 1:
            raise ValueError(f"noise_theta must be in (0, 1], got {self.noise_theta}")
        _not_negative(self, "noise_sigma", "noise_scale", "weight_noise")


@dataclass(frozen=True, kw_only=True)
class DDPGParams(NoisyParams):
    """Deep deterministic policy gradient, as in the paper."""

    actor_lr: float = 1e-4
    tau: float = 0.001
    noise_theta: float = 0.15
    noise_sigma: float = 0.2


@dataclass(frozen=True, kw_only=True)
class TD3Params(NoisyParams):
    """Twin critics, delayed policy, smoothed targets; its own paper's rates."""

    delay: int = 2
    """The actor and the targets move at every `delay`-th update."""
    smoothing: float = 0.2
    """Deviation of the noise on the target action, in units of half the action's range."""
    smoothing_clip: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("delay", self.delay)
        _not_negative(self, "smoothing", "smoothing_clip")


@dataclass(frozen=True, kw_only=True)
class SACParams(ActorCriticParams):
    """Soft actor-critic with a learned temperature."""

    actor_lr: float = 3e-4
    critic_lr: float = 3e-4
    temperature: float = 1.0
    temperature_lr: float = 3e-4
    target_entropy: float | None = None
    """Of the action in units of half its range; by default minus the action's dimension."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _positive(self, "temperature", "temperature_lr")
        if self.target_entropy is not None:
            check_number("target_entropy", self.target_entropy)


def _widths(hidden: Any) -> tuple[int, ...]:
    try:
        widths = tuple(check_count("width", width, high=2**20) for width in hidden)
    except (TypeError, ValueError):
        widths = ()
    if not widths:
        raise ValueError(f"hidden must name at least one positive width, got {hidden!r}")
    return widths


def _positive(params: object, *names: str) -> None:
    for name in names:
        check_number(name, getattr(params, name), low=0.0, above=True)


def _not_negative(params: object, *names: str) -> None:
    for name in names:
        check_number(name, getattr(params, name), low=0.0)


def _check_bound(bound: Any) -> None:
    if bound is None or bound == "auto":
        return
    numbers = list(bound) if isinstance(bound, tuple | list) else []
    if len(numbers) != 2 or not all(isinstance(n, int | float) and isfinite(n) for n in numbers):
        raise ValueError(f"value_bound must be None, 'auto' or two numbers, got {bound!r}")
    if not bound[0] < bound[1]:
        raise ValueError(f"value_bound must be a lower and a higher number, got {bound}")
