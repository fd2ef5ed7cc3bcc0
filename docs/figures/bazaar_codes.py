"""How much of the best action a code of b bits explains on Bazaar: the table of its page."""

import numpy as np

from lser.catalogue import SIMULATORS
from lser.replay.index.encoders import SimHash
from lser.replay.inspect import featured, share_explained

BITS = (4, 6, 10, 14)


def traffic(pages: int = 60, users: int = 512, *, dependence: float) -> tuple:
    """Observations of users served at random, and the interest that each of them hides."""
    env = SIMULATORS["bazaar"].load()(users, state_dependence=dependence)
    observation, _ = env.reset(seed=0)
    rng, seen, wanted = np.random.default_rng(0), [], []
    for _ in range(pages):
        seen.append(observation)
        wanted.append(env.simulator.world.interest(env.users.personal))
        action = rng.uniform(-1, 1, env.action_space.shape).astype(np.float32)
        observation = env.step(action)[0]
    return np.concatenate(seen), np.concatenate(wanted)


def row(seen: np.ndarray, wanted: np.ndarray, features: str) -> list[float]:
    """The share of the interest's variance that codes explain, for each number of bits."""
    ready, rng = featured(seen, features), np.random.default_rng(1)
    order = rng.permutation(len(seen))
    half, one = (order[::2], order[1::2]), np.ones(len(seen))

    def share(bits: int, seed: int) -> float:
        codes = SimHash(ready.shape[1], bits=bits, seed=seed).encode(ready)
        return share_explained(np.unique(codes, return_inverse=True)[1], wanted, one, half)

    return [float(np.mean([share(bits, seed) for seed in range(5)])) for bits in BITS]


if __name__ == "__main__":
    print(f"| state dependence | features | {' | '.join(f'{b} bits' for b in BITS)} |")
    print("|---|---|" + "---|" * len(BITS))
    for dependence in (0.5, 0.75, 1.0):
        seen, wanted = traffic(dependence=dependence)
        for features in ("raw", "centred", "standardised"):
            shares = " | ".join(f"{s:.2f}" for s in row(seen, wanted, features))
            print(f"| {dependence:g} | {features} | {shares} |")
