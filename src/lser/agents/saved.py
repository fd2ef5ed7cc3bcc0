"""Agents back from the files that `agent.save` wrote."""

from itertools import pairwise
from pathlib import Path
from typing import Any

from lser import files
from lser.agents.actor_critic import ActorCritic
from lser.agents.bandit import Bandit
from lser.agents.click_model import ClickModel
from lser.agents.ddpg import DDPG
from lser.agents.oracle import Oracle
from lser.agents.ridge import Ridge
from lser.agents.sac import SAC
from lser.agents.simple import Popular, RandomAgent
from lser.agents.td3 import TD3

KINDS: dict[str, type[ActorCritic]] = {kind.__name__: kind for kind in (DDPG, TD3, SAC)}
BANDITS: dict[str, type[Bandit]] = {
    kind.__name__: kind for kind in (ClickModel, Oracle, Popular, RandomAgent, Ridge)
}


def load_agent(path: str | Path, *, device: str | None = None) -> Any:
    """The agent that `save` wrote, which goes on where it stood.

    One with networks goes on another `device` if given.
    """
    kind, state = files.load(path)
    if kind not in {**KINDS, **BANDITS}:
        known = ", ".join((*KINDS, *BANDITS))
        raise ValueError(f"{path} holds a {kind!r}, not an agent ({known})")
    try:
        if kind in BANDITS:
            return BANDITS[kind].from_file(state)
        config, arrays = state.config, state.arrays
        knobs = config["params"]
        if not isinstance(knobs, dict):
            raise TypeError("params")
        named: dict[str, Any] = {name: _tuple(value) for name, value in knobs.items()}
        if device is not None:
            named["device"] = device
        bounds = arrays["action_low"], arrays["action_high"]
        _check_size(named, int(str(config["observation_dim"])), len(bounds[0]), arrays)
        agent = KINDS[kind](int(str(config["observation_dim"])), *bounds, **named)
        agent.load_state_dict(files.restore(config["state"], arrays))
    except (
        KeyError,
        TypeError,
        IndexError,
        AttributeError,
        RuntimeError,
        ArithmeticError,
    ) as error:
        raise ValueError(f"{path} holds no whole {kind}: {error!r}") from None
    return agent


def _check_size(
    params: dict[str, Any], observation_dim: int, action_dim: int, arrays: dict[str, Any]
) -> None:
    """Refuse settings of networks larger than those saved, before memory is asked for them."""
    held = sum(array.size for array in arrays.values())
    widths = [observation_dim + action_dim, *params.get("hidden", ()), action_dim]
    if any(type(width) is not int or width < 0 for width in widths):
        raise ValueError(f"hidden={params.get('hidden')!r} is not made of widths")
    if sum(a * b for a, b in pairwise(widths)) > 4 * held + 1000:
        raise ValueError(f"networks of widths {widths} are larger than what is saved")


def _tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value
