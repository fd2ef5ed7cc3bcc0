"""RecoGym's numbers: worlds, events with their draws, statistics of users."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from parity.golden.files import Array, mean_and_error, ratio, save_arrays, save_json
from parity.recogym import (
    original_choice,
    original_env,
    original_modules,
    original_probability,
)

USERS, KEPT = 800, 200  # behind the statistics, and kept one by one
COLUMNS = ("n_bandit", "clicks", "n_views", "n_organic_sessions", "p_sum")
COLUMNS += ("first_session_len", "time")
WORLDS: dict[str, dict[str, Any]] = {
    "s42": {"random_seed": 42},
    "s7_flips4": {"random_seed": 7, "number_of_flips": 4},
    "s3_p30_norm": {"random_seed": 3, "num_products": 30, "normalize_beta": True},
}
TRACES: tuple[dict[str, Any], ...] = (
    {"random_seed": 42},
    {"random_seed": 7, "number_of_flips": 4},
    {"random_seed": 12, "prob_leave_organic": 0.3},  # a click after a "stop" leads on
)
CASES: dict[str, tuple[int, dict[str, Any], tuple[str, ...]]] = {
    "rg_p10_s42": (1, {"random_seed": 42}, ("random", "last_viewed", "oracle")),
    "rg_p10_s7_flips4": (1, {"random_seed": 7, "number_of_flips": 4}, ("last_viewed",)),
    "rg0_p10_s42": (0, {"random_seed": 42}, ("random",)),
}
VIEW, STATE, OMEGA, CLICK = 1, 2, 3, 4  # kinds of events; 0 is the user's arrival


def _env(config: dict[str, Any], version: int = 1) -> Any:
    config = dict(config)
    return original_env(config | {"version": version}, config.pop("random_seed"))


class Asked:
    """A generator that keeps the probabilities it is asked to draw by."""

    def choice(self, items: Any, p: Array) -> int:
        """Always the first; `probabilities` are those it was given."""
        self.probabilities = np.array(p)
        return 0


def probabilities(env: Any, omega: Array) -> tuple[Array, Array]:
    """What a user of interests `omega` views, and clicks on: both over products."""
    env.rng, env.omega, env.context_switch = Asked(), omega[:, None], True
    env.update_product_view()
    views, clicks = env.rng.probabilities, []
    for product in range(env.config.num_products):
        env.draw_click(product)
        clicks.append(env.rng.probabilities[1])
    return views, np.array(clicks)


def worlds() -> dict[str, Array]:
    """The click link and every table of three worlds."""
    link = original_modules()[0].ff
    points = np.linspace(-30, 30, 101)
    found: dict[str, Array] = {"ff_x": points, "ff_y": link(points)}
    for name, config in WORLDS.items():
        env, rng = _env(config), np.random.default_rng(1)
        omega = rng.normal(size=(8, env.config.K))
        views, clicks = zip(*(probabilities(env, row) for row in omega), strict=True)
        found |= {
            f"{name}/Gamma": env.Gamma,
            f"{name}/mu_organic": env.mu_organic[:, 0],
            f"{name}/beta": env.beta,
            f"{name}/mu_bandit": env.mu_bandit[:, 0],
            f"{name}/state_transition": env.state_transition,
            f"{name}/omega": omega,
            f"{name}/organic_probs": np.array(views),
            f"{name}/ctr": np.array(clicks),
        }
    return found


def worlds_of_version_0() -> dict[str, Array]:
    """The tables of two worlds of the first version."""
    found = {}
    for seed in (42, 1):
        env = _env({"random_seed": seed}, version=0)
        found[f"s{seed}/click_probs"] = env.click_probs
        found[f"s{seed}/product_transition"] = env.product_transition
    return found


class Watched:
    """The original's generator, which notes every draw it gives."""

    def __init__(self, generator: Any) -> None:
        self.generator, self.action, self.user = generator, -1, -1
        self.events: list[tuple[Any, ...]] = []
        self.omega: Array = np.zeros(5)

    def _next(self) -> Any:
        copy = np.random.RandomState()
        copy.set_state(self.generator.get_state())
        return copy

    def choice(self, items: Any, p: Array) -> Any:
        """One index or item by its probability, from one uniform."""
        uniform = float(self._next().random_sample())
        found = self.generator.choice(items, p=p)
        kind = CLICK if isinstance(items, list) else STATE if items == 3 else VIEW
        action = self.action if kind == CLICK else -1
        self._note(kind, uniform, int(found), action, np.zeros(5))
        return found

    def normal(self, loc: Any, scale: float, size: tuple[int, int]) -> Array:
        """A normal vector; it becomes the user's omega."""
        drawn = self._next().standard_normal(size)[:, 0]
        found: Array = self.generator.normal(loc, scale, size)
        self.omega = found[:, 0].copy()
        arrival = np.ndim(loc) == 0
        self.user += arrival
        self._note(0 if arrival else OMEGA, np.nan, -1, -1, drawn)
        return found

    def _note(self, kind: int, uniform: float, result: int, action: int, z: Array) -> None:
        self.events.append((self.user, kind, uniform, result, action, z, self.omega.copy()))


def traces(users: int) -> dict[str, Array]:
    """Every event of a few users under random recommendations, with its draw."""
    names = ("user", "kind", "uniform", "result", "action", "z", "omega_after")
    kinds = (np.int32, np.int8, np.float64, np.int16, np.int16, np.float64, np.float64)
    found: dict[str, list[Any]] = {name: [] for name in ("config_index", *names)}
    for index, config in enumerate(TRACES):
        env, rng = _env(config), np.random.default_rng(index)
        env.rng = watched = Watched(env.rng)
        for _ in range(users):
            env.reset()
            done = env.step(None)[2]
            while not done:
                watched.action = int(rng.integers(env.config.num_products))
                done = env.step(watched.action)[2]
        for name, values in zip(names, zip(*watched.events, strict=True), strict=True):
            found[name] += values
        found["config_index"] += [index] * len(watched.events)
    arrays = {name: np.array(found[name], kind) for name, kind in zip(names, kinds, strict=True)}
    arrays["config_index"] = np.array(found["config_index"], np.int8)
    return arrays | {"configs": np.array([json.dumps(config) for config in TRACES])}


def timelines(env: Any, policy: str, seed: int) -> Array:
    """Whole timelines on the original, (users, COLUMNS)."""
    rng, table = np.random.default_rng(seed), np.zeros((USERS, len(COLUMNS)))
    for row in table:
        env.reset()
        observation, _, done, _ = env.step(None)
        row[5], last = len(observation.sessions()), 0
        while True:
            views = observation.sessions()
            row[2:4] += len(views), len(views) > 0
            last = int(views[-1]["v"]) if len(views) else last
            if done:
                break
            product = original_choice(env, policy.replace("_", " "), last, rng)
            row[4] += original_probability(env, product)
            observation, reward, done, _ = env.step(product)
            row[:2] += 1, reward
        row[6] = env.current_time
    return table


def statistics() -> tuple[dict[str, Any], dict[str, Array]]:
    """Means, ratios and single users of every case."""
    stats: dict[str, Any] = {}
    kept: dict[str, Array] = {"columns": np.array(COLUMNS)}
    for name, (version, config, policies) in CASES.items():
        stats[name] = {"env": f"reco-gym-v{version}", "config": config, "policies": {}}
        for seed, policy in enumerate(policies):
            table = timelines(_env(config, version), policy, seed)
            kept[f"{name}/{policy}"] = table[:KEPT].astype(np.float32)
            stats[name]["policies"][policy] = {
                "n_users": USERS,
                "metrics": {m: mean_and_error(table[:, i]) for i, m in enumerate(COLUMNS)},
                "ctr": ratio(table[:, 1], table[:, 0]),
                "mean_click_prob": ratio(table[:, 4], table[:, 0]),
                "frac_users_without_bandit": float((table[:, 0] == 0).mean()),
            }
    return stats, kept


def record(folder: Path) -> list[Path]:
    """Record RecoGym."""
    stats, kept = statistics()
    return [
        save_arrays(folder / "rg_static.npz", worlds()),
        save_arrays(folder / "rg0_static.npz", worlds_of_version_0()),
        save_arrays(folder / "rg_traces.npz", traces(3)),
        save_json(folder / "rg_stats.json", stats),
        save_arrays(folder / "rg_users.npz", kept),
    ]
