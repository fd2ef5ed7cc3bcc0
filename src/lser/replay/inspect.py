"""What the code of an observation explains of rewards and actions, beside codes that cannot."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lser.checks import as_floats, check_count
from lser.replay.index.encoders import SimHash
from lser.replay.memories.params import FEATURES, Features
from lser.types import Float32, Float64

SHRINK = 10  # typical transitions
GAP = 20  # one part in so many, between what explains and what is explained
LEAST = 0.02  # of the variance, from which on codes are worth a try


class Explained(NamedTuple):
    """What codes of so many bits of such features explain, out of sample."""

    bits: int
    features: Features
    reward: float  # share of the variance of the reward
    action: float  # of what was rewarded: share of the variance of the actions
    reward_chance: float  # the same of codes given to somebody else
    action_chance: float
    occupied: int  # codes that occur
    median: float  # size of the bucket that a typical transition lies in


class Advice(NamedTuple):
    """Which codes to use, whether to use any, and why."""

    bits: int
    features: Features
    batch: int
    pays: bool
    words: str


def explained(
    observation: Float32,
    action: Float32,
    reward: Float32,
    *,
    bits: tuple[int, ...] = (4, 6, 8, 10, 12, 14),
    seed: int = 0,
    hashes: int = 3,
) -> list[Explained]:
    """What codes explain, for each number of bits and each kind of features.

    Transitions come oldest first. The older half gives every code a mean reward and a mean rewarded
    action (weighted by what the reward is above the lowest), and the newer half is explained by
    them, as a memory has to; what lies between is left out, so that no session explains itself.
    Codes that the older half does not have fall back on the mean of all. Means over `hashes` draws
    of the planes.
    """
    seen = as_floats("observation", observation, (None, None))
    n = len(seen)
    acted, earned = as_floats("action", action, (n, None)), as_floats("reward", reward, (n,))
    if n < 100:
        raise ValueError(f"at least 100 transitions are needed to say anything, got {n}")
    rng = np.random.default_rng(seed)
    order, gap = np.arange(n), n // GAP
    half = order[: (n - gap) // 2], order[(n + gap) // 2 :]
    found = []
    for features in FEATURES:
        ready = featured(seen, features)
        for count in bits:
            check_count("bits", count, high=32)
            draws = [_once(ready, acted, earned, half, count, rng) for _ in range(hashes)]
            numbers = np.mean(draws, axis=0)
            reward_share, action_share, reward_chance, action_chance = map(float, numbers[:4])
            shares = (reward_share, action_share, reward_chance, action_chance)
            found.append(Explained(count, features, *shares, int(numbers[4]), float(numbers[5])))
    return found


def gain(one: Explained) -> float:
    """What codes explain of rewards and of rewarded actions, beyond chance and beyond nothing."""
    rewards = one.reward - max(one.reward_chance, 0.0)
    actions = one.action - max(one.action_chance, 0.0)
    return max(rewards, 0.0) + max(actions, 0.0)


def advise(found: list[Explained], transitions: int) -> Advice:
    """The codes that explain most beyond chance, and whether that is worth a memory's while."""
    best = max(found, key=gain)
    pays = gain(best) > LEAST
    batch = 32 if best.median < 512 or transitions < 50_000 else 128
    more = "centring them pays" if best.features == "centred" else f"{best.features} features"
    if not pays:
        words = (
            "Codes explain next to nothing beyond chance: replaying by similarity has nothing to "
            "go by here. Use uniform replay."
        )
    else:
        words = (
            f"Use bits={best.bits}, features={best.features!r} ({more}) and batches of {batch}: "
            f"a typical bucket holds {best.median:,.0f} transitions. Compare with uniform and "
            "shuffled-code before you believe it: what a code explains need not be what an agent "
            "lacks."
        )
    return Advice(best.bits, best.features, batch, pays, words)


def featured(seen: Float32, features: Features) -> Float32:
    """Observations as a hash with such features reads them."""
    if features == "raw":
        return seen
    middle, spread = seen.mean(axis=0), seen.std(axis=0)
    centred = seen - middle
    if features == "standardised":
        centred = centred / np.where(spread > 0, spread, 1)
    ready: Float32 = centred.astype(np.float32)
    return ready


def _once(
    ready: Float32,
    action: Float32,
    reward: Float32,
    half: tuple[NDArray[np.intp], NDArray[np.intp]],
    bits: int,
    rng: np.random.Generator,
) -> Float64:
    """Four shares and two sizes for one draw of the planes."""
    hashed = SimHash(ready.shape[1], bits=bits, seed=int(rng.integers(2**31)))
    names, codes, sizes = np.unique(hashed.encode(ready), return_inverse=True, return_counts=True)
    weight = (reward - reward.min()).astype(np.float64)
    one = np.ones(len(reward))
    shares = [
        share_explained(code, target, given, half)
        for code in (codes, rng.permutation(codes))
        for target, given in ((reward[:, None], one), (action, weight))
    ]
    return np.array([*shares, len(names), float(np.median(sizes[codes]))])


def share_explained(
    codes: NDArray[np.intp],
    target: Float32,
    weight: Float64,
    half: tuple[NDArray[np.intp], NDArray[np.intp]],
) -> float:
    """Share of the weighted variance of `target` in the second half that means of codes explain.

    Means are shrunk towards the mean of all by ten typical transitions, so that codes which occur
    once do not count as knowledge.
    """
    first, second = half
    known = target[first].astype(np.float64)
    total = weight[first].sum()
    if total <= 0 or weight[second].sum() <= 0:
        return 0.0
    middle = (weight[first, None] * known).sum(axis=0) / total
    count = int(codes.max()) + 1
    sums = np.zeros((count, target.shape[1]))
    np.add.at(sums, codes[first], weight[first, None] * (known - middle))
    counts = np.bincount(codes[first], weight[first], minlength=count)
    prior = SHRINK * total / len(first)
    means = sums / (counts + prior)[:, None]
    truth = target[second].astype(np.float64) - middle
    missed = ((truth - means[codes[second]]) ** 2).sum(axis=1) @ weight[second]
    usual = (truth**2).sum(axis=1) @ weight[second]
    return float(1 - missed / usual) if usual > 0 else 0.0
