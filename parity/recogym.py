"""RecoGym beside the original package (recogym 0.1.3.0): same worlds, fresh users, same statistics.

Needs ``pip install --no-deps recogym==0.1.3.0`` and numpy, scipy, pandas, tqdm, numba, gymnasium.
The original's dynamics run untouched; only its imports of gym and of its agents are stood in for.
Run ``python parity/recogym.py``; the exit code says whether all agree.
"""

import dataclasses
import importlib
import importlib.metadata
import json
import sys
import time
import types
from collections.abc import Callable
from functools import cache
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from lser.simulators.recogym import Params
from lser.simulators.recogym.simulator import RecoGym, Users

THRESHOLD = 4.0  # |z| per comparison; 90 comparisons, so a false alarm about once in 170 runs
Array = NDArray[Any]

CONFIGS: dict[str, dict[str, Any]] = {
    "default": {},
    "flips": {"number_of_flips": 4, "normalize_beta": True},
    "drifting": {"change_omega_for_bandits": True, "sigma_omega": 0.3},
    "shifted": {
        "num_products": 30,
        "K": 3,
        "sigma_omega_initial": 2.0,
        "sigma_mu_organic": 1.0,
        "prob_leave_organic": 0.03,
        "prob_leave_bandit": 0.3,
        "prob_bandit_to_organic": 0.2,
        "prob_organic_to_bandit": 0.5,
    },
    "normal time": {"time_generator": "normal", "normal_time_mu": 1.0, "normal_time_sigma": 2.0},
    "version 0": {"version": 0, "num_clusters": 5, "phi_var": 0.5},
}
POLICIES = ("random", "last viewed", "oracle")
METRICS = ("recommendations", "clicks", "views", "time", "click probability")


@cache
def original_modules() -> tuple[Any, Any, Any]:
    """The original's two environments and its random clock, without its agents."""
    # by its distribution: the name alone may find this file
    folder = importlib.metadata.distribution("recogym").locate_file("recogym")
    package, agents = types.ModuleType("recogym"), types.ModuleType("recogym.agents")
    package.__path__ = [str(folder)]
    vars(agents)["Agent"] = type("Agent", (), {})
    sys.modules |= {
        "gym": gymnasium,
        "gym.spaces": gymnasium.spaces,
        "recogym": package,
        "recogym.agents": agents,
    }
    one = importlib.import_module("recogym.envs.reco_env_v1")
    zero = importlib.import_module("recogym.envs.reco_env_v0")
    clock = importlib.import_module("recogym.envs.features.time")
    return one, zero, clock.NormalTimeGenerator


def original_env(config: dict[str, Any], seed: int) -> Any:
    """An environment of the original with the config's names translated where they differ."""
    one, zero, clock = original_modules()
    config = dict(config)
    version = config.pop("version", 1)
    named = config.pop("time_generator", "default")
    env = one.RecoEnv1() if version else zero.RecoEnv0()
    args = {**(one.env_1_args if version else zero.env_0_args), **config, "random_seed": seed}
    if named == "normal":
        args["time_generator"] = clock(types.SimpleNamespace(**args))
    env.init_gym(args)
    env.reset_random_seed(1)  # without this the first user's interests are the first product
    return env


def original_choice(env: Any, policy: str, last: int, rng: np.random.Generator) -> int:
    """The product that `policy` recommends to the original's user."""
    if policy == "random":
        return int(rng.integers(env.config.num_products))
    if policy == "last viewed":
        return last
    if hasattr(env, "omega"):
        return int((env.beta @ env.omega + env.mu_bandit).argmax())
    return int(env.click_probs[:, env.product_view].argmax())


def original_probability(env: Any, product: int) -> float:
    """The true click probability in the original."""
    if not hasattr(env, "omega"):
        return float(env.click_probs[product, env.product_view])
    link = importlib.import_module("recogym.envs.reco_env_v1").ff
    return float(link(float((env.beta[product] @ env.omega + env.mu_bandit[product])[0])))


def original_users(env: Any, policy: str, count: int, seed: int) -> Array:
    """Whole timelines on the original, (count, metrics)."""
    rng, table = np.random.default_rng(seed), np.zeros((count, len(METRICS)))
    for row in table:
        env.reset()
        observation, _, done, _ = env.step(None)
        last = 0
        while True:
            sessions = observation.sessions()
            row[2] += len(sessions)
            last = int(sessions[-1]["v"]) if len(sessions) else last
            if done:
                break
            product = original_choice(env, policy, last, rng)
            row[4] += original_probability(env, product)
            observation, reward, done, _ = env.step(product)
            row[0] += 1
            row[1] += reward
        row[3] = env.current_time
    return table


def our_users(simulator: RecoGym, policy: str, count: int, seed: int) -> Array:
    """Whole timelines on ours, (count, metrics)."""
    rng, table = np.random.default_rng(seed), np.zeros((count, len(METRICS)))
    choices: dict[str, Callable[[Users], Array]] = {
        "random": lambda u: rng.integers(simulator.params.num_products, size=u.last.size),
        "last viewed": lambda u: u.last.copy(),
        "oracle": lambda u: simulator.click_probabilities(u).argmax(axis=1),
    }
    users, reached = simulator.arrive_all(rng, count)
    table[:, 2], table[:, 3] = users.views, users.time
    rows, stay = np.arange(count), reached
    while stay.any():
        rows = rows[stay]
        users = Users(*(getattr(users, f.name)[stay] for f in dataclasses.fields(users)))
        outcome = simulator.recommend(users, choices[policy](users), rng)
        info, stay = outcome.info, ~outcome.terminated
        table[rows, 0] += 1
        table[rows, 1] += info["clicks"]
        table[rows, 2] += info["views"]
        table[rows, 3] = users.time
        table[rows, 4] += info["click_prob"]
    return table


def estimates(table: Array) -> dict[str, tuple[float, float]]:
    """Each metric and its standard error over users; the last as a ratio to recommendations."""
    root = np.sqrt(len(table))
    found = {
        name: (float(table[:, i].mean()), float(table[:, i].std() / root))
        for i, name in enumerate(METRICS[:-1])
    }
    shown, probability = table[:, 0], table[:, 4]
    ratio = probability.sum() / shown.sum()
    error = (probability - ratio * shown).std() / shown.mean() / root
    return found | {METRICS[-1]: (float(ratio), float(error))}


def compare(seed: int | None = None, *, count: int = 300) -> list[dict[str, Any]]:
    """Rows of (config, policy, metric, ours, original, z) on a fresh world and fresh users."""
    root, rows = np.random.default_rng(seed), []
    for name, config in CONFIGS.items():
        world = int(root.integers(2**31))
        simulator = RecoGym(Params(random_seed=world, **config))
        env = original_env(config, world)
        for policy in POLICIES:
            ours = estimates(our_users(simulator, policy, 20 * count, int(root.integers(2**31))))
            theirs = estimates(original_users(env, policy, count, int(root.integers(2**31))))
            for metric in METRICS:
                (a, sa), (b, sb) = ours[metric], theirs[metric]
                z = (a - b) / max(float(np.hypot(sa, sb)), 1e-12)
                row = {"metric": metric, "ours": a, "original": b, "z": z}
                rows.append({"policy": f"{name}, {policy}"} | row)
    return rows


def original_step_rate(seconds: float = 2.0) -> float:
    """Events per second of the original, views included, with random recommendations."""
    env, rng = original_env({}, 42), np.random.default_rng(0)
    env.reset()
    events, done, start = len(env.step(None)[0].sessions()), env.state == 2, time.process_time()
    while time.process_time() - start < seconds:
        if done:
            env.reset()
            observation, _, done, _ = env.step(None)
        else:
            observation, _, done, _ = env.step(int(rng.integers(10)))
            events += 1
        events += len(observation.sessions())
    return events / (time.process_time() - start)


def main() -> int:
    """Print the comparison and tell by the exit code whether every |z| is under the threshold."""
    rows = compare()
    sys.stdout.write("RecoGym beside recogym 0.1.3.0\n")
    for row in rows:
        sys.stdout.write(json.dumps(row, default=float) + "\n")
    return int(any(abs(row["z"]) >= THRESHOLD for row in rows))


if __name__ == "__main__":
    sys.exit(main())
