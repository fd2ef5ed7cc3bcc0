"""RecoGym against the original's tables, traces and statistics, and its own promises."""

import dataclasses
import functools
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from lser.simulators.recogym import PRESETS, Params, kernels
from lser.simulators.recogym.simulator import RecoGym, Users
from lser.simulators.recogym.world import make_world

COLUMNS = (
    "n_bandit",
    "clicks",
    "n_views",
    "n_organic_sessions",
    "p_sum",
    "first_session_len",
    "time",
)
Policy = Callable[[RecoGym, Users, np.random.Generator], Any]


def policy_named(name: str) -> Policy:
    if match := re.fullmatch(r"const_(\d+)", name):
        product = int(match[1])
        return lambda sim, users, rng: np.full(users.last.size, product)
    return {
        "random": lambda sim, u, rng: rng.integers(sim.params.num_products, size=u.last.size),
        "last_viewed": lambda sim, u, rng: u.last.copy(),
        "user_count": lambda sim, u, rng: u.seen.argmax(axis=1),
        "pop": lambda sim, u, rng: np.full(u.last.size, sim.world.mu_organic.argmax()),
        "oracle": lambda sim, u, rng: sim.click_probabilities(u).argmax(axis=1),
        "worst": lambda sim, u, rng: sim.click_probabilities(u).argmin(axis=1),
        "round_robin": lambda sim, u, rng: u.shown % sim.params.num_products,
    }[name]


def subset(users: Users, rows: Any) -> Users:
    return Users(*(getattr(users, f.name)[rows] for f in dataclasses.fields(users)))


def roll(sim: RecoGym, policy: Policy, n: int, seed: int) -> np.ndarray:
    """Whole timelines of `n` users, (n, 7) in the order of COLUMNS."""
    rng = np.random.default_rng(seed)
    users, reached = sim.arrive_all(rng, n)
    table = np.zeros((n, len(COLUMNS)))
    table[:, 2] = table[:, 5] = users.views
    table[:, 3] = 1
    table[:, 6] = users.time
    rows = np.flatnonzero(reached)
    users = subset(users, rows)
    while rows.size:
        outcome = sim.recommend(users, np.asarray(policy(sim, users, rng), np.int64), rng)
        viewed = outcome.info["views"]
        step = [np.ones(rows.size), outcome.info["clicks"], viewed, viewed > 0]
        table[rows, :4] += np.stack(step, axis=1)
        table[rows, 4] += outcome.info["click_prob"]
        table[rows, 6] = users.time
        rows, users = rows[~outcome.terminated], subset(users, ~outcome.terminated)
    return table


def params_of(block: dict[str, Any]) -> Params:
    return Params(version=int(block["env"][-1]), **block["config"])


def static_params(name: str) -> Params:
    found = re.fullmatch(r"s(\d+)(?:_p(\d+))?(_norm)?(?:_flips(\d+))?", name)
    assert found, name
    return Params(
        random_seed=int(found[1]),
        num_products=int(found[2] or 10),
        normalize_beta=bool(found[3]),
        number_of_flips=int(found[4] or 0),
    )


def ratio(table: np.ndarray, top: int, bottom: int) -> tuple[float, float]:
    value = table[:, top].sum() / table[:, bottom].sum()
    residual = table[:, top] - value * table[:, bottom]
    return value, residual.std() / table[:, bottom].mean() / math.sqrt(len(table))


def assert_equals_table(data: Any, name: str, key: str, ours: Any) -> None:
    np.testing.assert_allclose(ours, data[f"{name}/{key}"], rtol=0, atol=1e-12, err_msg=key)


def test_click_link_equals_the_originals(golden: Path) -> None:
    data = np.load(golden / "rg_static.npz")
    ours = [kernels.link(x) for x in data["ff_x"]]
    np.testing.assert_allclose(ours, data["ff_y"], rtol=0, atol=1e-12)


def test_worlds_and_their_probabilities_equal_the_originals(golden: Path) -> None:
    data = np.load(golden / "rg_static.npz")
    for name in sorted({key.split("/")[0] for key in data.files if "/" in key}):
        sim = RecoGym(static_params(name))
        close = functools.partial(assert_equals_table, data, name)
        close("Gamma", sim.world.gamma)
        close("mu_organic", sim.world.mu_organic)
        close("beta", sim.world.beta)
        close("mu_bandit", sim.world.mu_bandit)
        close("state_transition", sim.world.transition)
        omega = data[f"{name}/omega"]
        weights = np.empty((len(omega), sim.params.num_products))
        for row, out in zip(omega, weights, strict=True):
            kernels.view_weights(sim.world, row, 0, out)
        close("organic_probs", weights / weights.sum(axis=1, keepdims=True))
        users = dataclasses.replace(sim.arrive(np.random.default_rng(0), len(omega)), omega=omega)
        close("ctr", sim.click_probabilities(users))
        each = [
            [kernels.click_probability(sim.world, row, 0, a) for a in range(weights.shape[1])]
            for row in omega
        ]
        close("ctr", each)


def test_version_0_tables_equal_the_originals(golden: Path) -> None:
    data = np.load(golden / "rg0_static.npz")
    for name in {key.split("/")[0] for key in data.files}:
        world = make_world(Params(version=0, random_seed=int(name[1:])))
        np.testing.assert_allclose(world.click_table, data[f"{name}/click_probs"], atol=1e-12)
        np.testing.assert_allclose(world.view_table, data[f"{name}/product_transition"], atol=0)


class Recorded:
    """A generator that repeats the original's draws."""

    def __init__(self, uniforms: np.ndarray, normals: np.ndarray) -> None:
        self.uniforms, self.normals = iter(uniforms.tolist()), iter(normals.ravel().tolist())

    def random(self) -> float:
        return next(self.uniforms)

    def standard_normal(self) -> float:
        return next(self.normals)


def test_recorded_draws_of_the_original_give_its_events(
    golden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = dict(np.load(golden / "rg_traces.npz").items())
    for value in list(vars(kernels).values()):  # as plain Python, to take the recorded generator
        if hasattr(value, "py_func"):
            monkeypatch.setattr(kernels, value.py_func.__name__, value.py_func)
    users = np.stack([data["config_index"], data["user"]], axis=1)
    for config, user in np.unique(users, axis=0):
        of_user = (data["config_index"] == config) & (data["user"] == user)
        event = {key: value[of_user] for key, value in data.items() if key != "configs"}
        replay_user(Params(**json.loads(str(data["configs"][config]))), event)


def replay_user(params: Params, event: dict[str, np.ndarray]) -> None:
    kind = event["kind"]
    drawn = np.isin(kind, (1, 2, 4))
    rng: Any = Recorded(event["uniform"][drawn], event["z"][~drawn])
    world = make_world(params)
    user = RecoGym(params)._blank(1)
    arrays = (user.omega, user.seen, user.last, user.views, user.time)
    counters = (user.since, user.clicks, user.shown)
    reached = kernels.arrive(world, *arrays, rng, False)
    over = not reached[0]
    for index in np.flatnonzero(kind == 4):
        assert not over
        product = np.array([event["action"][index]], np.int64)
        _, click, left, _ = kernels.recommend(world, product, *arrays, *counters, rng)
        assert click[0] == event["result"][index]
        over = bool(left[0])
    assert over
    with pytest.raises(StopIteration):
        rng.random()
    np.testing.assert_array_equal(
        user.seen[0], np.bincount(event["result"][kind == 1], minlength=params.num_products)
    )
    np.testing.assert_allclose(user.omega[0], event["omega_after"][-1], rtol=0, atol=1e-12)
    assert user.time[0] == (kind == 2).sum()


def golden_blocks(golden: Path) -> list[tuple[str, dict[str, Any]]]:
    return sorted(json.loads((golden / "rg_stats.json").read_text()).items())


def test_statistics_agree_with_the_originals(golden: Path) -> None:
    """Over the 16 golden runs: |z| < 4 per metric (about 1 % for any false alarm)."""
    worst = []
    for number, (name, block) in enumerate(golden_blocks(golden)):
        sim = RecoGym(params_of(block))
        for policy, theirs in block["policies"].items():
            ours = roll(sim, policy_named(policy), 4_000, seed=number)
            for column, metric in enumerate(COLUMNS):
                mean, error = ours[:, column].mean(), ours[:, column].std() / math.sqrt(len(ours))
                reference = theirs["metrics"][metric]
                spread = math.hypot(error, reference["se"])
                z = (mean - reference["mean"]) / spread if spread else mean - reference["mean"]
                worst.append((abs(z), name, policy, metric))
            for metric, top in (("ctr", 1), ("mean_click_prob", 4)):
                value, error = ratio(ours, top, 0)
                z = (value - theirs[metric]["value"]) / math.hypot(error, theirs[metric]["se"])
                worst.append((abs(z), name, policy, metric))
            without = (ours[:, 0] == 0).mean()
            expected = theirs["frac_users_without_bandit"]
            spread = math.sqrt(0.0385 * 0.9615 * (1 / len(ours) + 1 / theirs["n_users"]))
            worst.append((abs(without - expected) / spread, name, policy, "without"))
    assert max(worst)[0] < 4, sorted(worst)[-5:]


def test_distributions_over_users_agree_with_the_originals(golden: Path) -> None:
    """Kolmogorov-Smirnov p > 1e-4 for every column of every golden run."""
    theirs = np.load(golden / "rg_users.npz")
    for name, block in golden_blocks(golden):
        sim = RecoGym(params_of(block))
        for policy in block["policies"]:
            ours = roll(sim, policy_named(policy), 2_000, seed=17)
            for column, metric in enumerate(theirs["columns"]):
                reference = theirs[f"{name}/{policy}"][:, column].astype(np.float64)
                sample = ours[:, COLUMNS.index(metric)].astype(np.float32)
                p = stats.ks_2samp(sample, reference).pvalue
                assert p > 1e-4, (name, policy, metric, p)


def test_random_and_oracle_average_to_the_known_scores_over_worlds() -> None:
    worlds = [RecoGym(Params(random_seed=seed)) for seed in range(24)]
    for name, known in (("random", 0.0106), ("oracle", 0.0196)):
        scores = [ratio(roll(world, policy_named(name), 120, seed=0), 4, 0)[0] for world in worlds]
        assert abs(np.mean(scores) - known) < 3 * np.std(scores) / math.sqrt(len(scores))


def test_anchors_are_the_expected_ctr_in_this_world() -> None:
    world = RecoGym(Params(random_seed=3))
    for anchor in world.anchors():
        value, error = ratio(roll(world, policy_named(anchor.policy), 4_000, seed=1), 4, 0)
        assert abs(anchor.score - value) < 6 * error


def test_the_informative_preset_makes_the_last_view_a_poor_guide() -> None:
    sim = RecoGym(dataclasses.replace(PRESETS["informative"], actions="discrete"))
    score = {
        name: ratio(roll(sim, policy_named(name), 2_000, seed=0), 4, 0)[0]
        for name in ("last_viewed", "oracle")
    }
    assert score["last_viewed"] == pytest.approx(0.0124, abs=2e-4)
    assert score["oracle"] == pytest.approx(0.0217, abs=2e-4)
