"""The offset of Bazaar's logistic choice at which random actions have CTR ``sparsity``."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from lser.simulators.bazaar.params import Params
from lser.simulators.bazaar.world import World, first_places
from lser.simulators.item_index import Ids
from lser.types import Float32

_STREAMS, _PAGES, _ROUNDS = 2_048, 48, 6
_POOL = (4_096, 65_536)  # random pages: the fewer the dearer the search
_POOL_SCORES = 1 << 28  # items looked at for them


class Settled(NamedTuple):
    """A world and the offset that goes with it."""

    world: World
    offset: float


class _Traffic(NamedTuple):
    """Random pages shown to sampled users, apart from how they click: T pages, n streams."""

    appeal: Float32  # (T, n, k)
    slates: Ids  # (T, n, k)
    draws: Float32  # (T, n, k) uniform numbers that decide clicks


@lru_cache(maxsize=4)
def settle(params: Params) -> Settled:
    """The world of `params` with its calibrated offset; the last few are kept."""
    world = World(params)
    return Settled(world, _calibrate(world))


def random_slates(world: World, rng: np.random.Generator, n: int) -> Ids:
    """Pages (n, k) that uniformly random actions show."""
    params = world.params
    if params.actions != "continuous":
        return rng.integers(params.items, size=(n, params.shown))
    weights = rng.uniform(-1, 1, (n, params.features)).astype(np.float32)
    return world.index.search(weights, params.shown)


def _calibrate(world: World) -> float:
    params = world.params
    traffic = _random_traffic(world, np.random.default_rng([params.world_seed, 1]))
    target = _logit(params.sparsity)
    offset = 0.0
    slope = 0.7  # of logit CTR in the offset: a start, then by secants
    first = traffic.appeal[0]
    for _ in range(30):  # ignoring that the satisfied stay longer
        miss = target - _logit(float(world.click_chance(first, offset).mean()))
        offset += miss / slope
    last_offset, last_value = offset, _logit(_session_ctr(world, traffic, offset))
    offset += (target - last_value) / slope
    for _ in range(_ROUNDS):
        value = _logit(_session_ctr(world, traffic, offset))
        if abs(value - target) < 1e-3:
            break
        if abs(offset - last_offset) > 1e-4:
            slope = float(np.clip((value - last_value) / (offset - last_offset), 0.2, 2))
        last_offset, last_value = offset, value
        offset += (target - value) / slope
    return offset


def _random_traffic(world: World, rng: np.random.Generator) -> _Traffic:
    """Slates do not depend on clicks, so they are found once for all offsets."""
    params = world.params
    pool = random_slates(world, rng, int(np.clip(_POOL_SCORES // params.items, *_POOL)))
    slates = pool[rng.integers(len(pool), size=(_PAGES, _STREAMS))]
    appeal = np.empty(slates.shape, np.float32)
    groups = world.groups(rng, _STREAMS)
    personal = world.personal_taste(groups, rng)
    for page in range(_PAGES):
        appeal[page] = world.appeal(world.interest(personal), slates[page], groups)
        personal = world.drifted(personal, rng)
    if params.actions == "slate":
        repeats = ~first_places(slates.reshape(-1, params.shown))
        appeal[repeats.reshape(slates.shape)] = -np.inf
    return _Traffic(appeal, slates, rng.random(slates.shape, dtype=np.float32))


def _session_ctr(world: World, traffic: _Traffic, offset: float) -> float:
    """CTR over the sessions of random traffic; each page counts by the chance to be reached."""
    reached = np.ones(_STREAMS, np.float32)
    satisfaction = np.zeros(_STREAMS, np.float32)
    clicks = pages = 0.0
    for appeal, slates, draws in zip(*traffic, strict=True):
        chance = world.click_chance(appeal, offset)
        clicks += float(reached @ chance.mean(axis=1))
        pages += float(reached.sum())
        satisfaction = world.satisfaction(satisfaction, slates, draws < chance)
        reached = reached * (1 - world.leave_chance(satisfaction))
    return clicks / pages


def _logit(p: float) -> float:
    p = min(max(p, 1e-9), 1 - 1e-9)
    return float(np.log(p / (1 - p)))
