"""Long-term satisfaction does what RecSim 0.2.4 does: tables, distributions, and its optimum.

Distributions are compared by z scores with |z| < 4 (two-sided p = 6e-5 each) and by two-sample
Kolmogorov-Smirnov tests with p > 1e-4; with about 2,300 and 110 such comparisons (most of them
correlated: the profile over the steps of a session) a correct simulator would fail one of them
with some 10 % over the choice of seeds. The seeds are fixed.
"""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from scipy.stats import ks_2samp

import lser  # noqa: F401  registers the environments
from lser.simulators.recsim.long_term_satisfaction import Params, dynamics
from lser.simulators.recsim.long_term_satisfaction.optimum import expected_returns
from lser.simulators.recsim.long_term_satisfaction.simulator import LongTermSatisfaction, Users

NAME = "lser/LongTermSatisfaction-v0"
SESSIONS = 2000
METRICS = ("return", "length", "log_return_sum", "clipped_return", "max_reward", "cb_mean")
METRICS += ("final_npe", "final_satisfaction", "initial_npe")


def top(score: np.ndarray, k: int) -> np.ndarray:
    return np.argsort(-score, axis=1, kind="stable")[:, :k]


def slates(policy: str, users: Users, k: int, rng: np.random.Generator, t: int) -> np.ndarray:
    """The slate (n, k) that a policy of the recorded sessions shows."""
    bait = users.clickbait
    if policy == "alternate":
        policy = "choc" if t % 2 == 0 else "kale"
    first = np.tile(np.arange(k), (len(bait), 1))
    choices: dict[str, Callable[[], np.ndarray]] = {
        "random": lambda: top(rng.random(bait.shape), k),
        "first_k": lambda: first,
        "duplicate_first": lambda: np.zeros_like(first),
        "short_slate": lambda: np.where((first == k - 1) & (first > 0), -1, first),
        "choc": lambda: top(bait, k),
        "kale": lambda: top(-bait, k),
        "mid": lambda: top(-np.abs(bait - 0.5), k),
        "npe_threshold": lambda: top(np.where(users.exposure[:, None] > 0, bait, -bait), k),
    }
    return choices[policy]()


def sessions(policy: str, params: Params, n: int, seed: int) -> dict[str, np.ndarray]:
    """Per-session metrics of `n` users, and what happened at every step."""
    rng, sim = np.random.default_rng(seed), LongTermSatisfaction(params)
    users = sim.arrive(rng, n)
    initial, infos, terminated = users.exposure.copy(), [], np.zeros(n, bool)
    while not terminated.all():
        assert not terminated.any()  # all sessions have the same length
        slate = slates(policy, users, params.slate_size, rng, len(infos))
        _, terminated, info = sim.step(users, slate, rng)
        infos.append(info)
    step = {name: np.stack([info[name] for info in infos]) for name in infos[0]}
    return {
        "return": step["engagement"].sum(0),
        "length": np.full(n, len(infos)),
        "log_return_sum": np.log(step["engagement"]).sum(0),
        "clipped_return": step["observed_engagement"].sum(0),
        "max_reward": step["engagement"].max(0),
        "cb_mean": step["clickbait"].mean(0),
        "final_npe": users.exposure,
        "final_satisfaction": users.satisfaction,
        "initial_npe": initial,
        "profile": np.stack([step[name] for name in ("engagement", "exposure", "satisfaction")]),
    }


def recorded() -> list[str]:
    from conftest import GOLDEN

    stats = json.loads((GOLDEN / "lts_stats.json").read_text())
    return [f"{name}/{policy}" for name in stats for policy in stats[name]["policies"]]


def test_steps_are_the_recorded_ones(golden: Path) -> None:
    table = np.load(golden / "lts_tables.npz")
    row = dict(zip(table["cols"], table["rows"].T, strict=True))
    p = dict(zip(table["param_names"], table["param_values"], strict=True))
    assert p == {name: getattr(Params(), name) for name in p}
    ours = dynamics.engagement(
        row["clickbait"],
        row["satisfaction"],
        row["z_engagement"],
        *(p[name] for name in ("choc_mean", "choc_stddev", "kale_mean", "kale_stddev")),
    )
    after = dynamics.exposed(
        row["npe"], row["clickbait"], row["z_innovation"], p["memory_discount"], 0.05
    )
    np.testing.assert_allclose(ours, row["engagement"], rtol=1e-12)
    np.testing.assert_allclose(after, row["npe_after"], rtol=0, atol=1e-12)
    satisfaction = dynamics.satisfied(after, p["sensitivity"])
    np.testing.assert_allclose(satisfaction, row["satisfaction_after"], rtol=0, atol=1e-12)


def test_the_batched_step_is_the_recorded_one(golden: Path) -> None:
    table = np.load(golden / "lts_tables.npz")
    row = {k: v.copy() for k, v in zip(table["cols"], table["rows"].T, strict=True)}
    sim = LongTermSatisfaction(Params())
    n = len(table["rows"])
    response = dynamics.advance(
        row["npe"],
        row["satisfaction"],
        row["budget"],
        np.zeros((n, 3)),
        row["clickbait"][:, None],
        np.zeros((n, 1), np.int64),
        np.stack([row["z_engagement"], row["z_innovation"]], 1),
        sim.constants,
    )
    np.testing.assert_allclose(response.engagement, row["engagement"], rtol=1e-12)
    np.testing.assert_allclose(response.observed, row["engagement_obs"], rtol=1e-12)
    np.testing.assert_array_equal(response.terminated, row["done"] == 1)
    for ours in ("npe", "satisfaction", "budget"):
        np.testing.assert_allclose(row[ours], row[f"{ours}_after"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("case", recorded())
def test_sessions_are_distributed_as_recorded(golden: Path, case: str) -> None:
    name, policy = case.split("/")
    entry = json.loads((golden / "lts_stats.json").read_text())[name]
    theirs, config = entry["policies"][policy], entry["config"]
    known = {field.name for field in dataclasses.fields(Params)}
    overrides = {key: value for key, value in config.items() if key in known}
    for part in ("um", "ds", "gin_us"):
        overrides.update(config.get(part, {}))
    if not config["resample"]:
        overrides["catalogue"] = tuple(entry["catalogue"])
    params = Params(
        num_candidates=config["nc"],
        slate_size=config["k"],
        resample_documents=config["resample"],
        actions="slate",
        **overrides,
    )
    n = SESSIONS
    ours = sessions(policy, params, n, seed=theirs["seed"])
    z = {}

    def compare(metric: str, x: np.ndarray, other: float, other_se: float) -> None:
        spread = np.hypot(x.std(ddof=1) / np.sqrt(n), other_se)
        z[metric] = (x.mean() - other) / max(spread, 1e-9)

    for metric, m in theirs["metrics"].items():
        compare(metric, ours[metric], m["mean"], m["se"])
    rate = theirs["reward_per_step"]
    compare("reward_per_step", ours["return"] / ours["length"], rate["value"], rate["se"])
    profile = theirs["step_profile"]
    for metric, values in zip(("reward", "npe", "sat"), ours["profile"], strict=True):
        for t, x in enumerate(values):
            compare(f"{metric} {t}", x, profile[f"{metric}_mean"][t], profile[f"{metric}_se"][t])
    assert {key: round(value, 2) for key, value in z.items() if not abs(value) < 4} == {}
    episodes = np.load(golden / "lts_episodes.npz")
    for i, metric in enumerate(episodes["columns"]):
        p = ks_2samp(episodes[case][:, i], ours[str(metric)].astype(np.float32)).pvalue
        assert p > 1e-4, (metric, p)


def test_a_drawn_catalogue_is_recsims(golden: Path) -> None:
    entry = json.loads((golden / "lts_stats.json").read_text())["lts_20x1_fixed"]
    users = LongTermSatisfaction(Params(resample_documents=False)).arrive(
        np.random.default_rng(0), 2
    )
    np.testing.assert_array_equal(users.clickbait[1], entry["catalogue"])


# The optimum ----------------------------------------------------------------------------------


def test_most_clickbait_first_is_optimal_at_recsims_sensitivity() -> None:
    random, best = expected_returns(Params())
    for policy, value in (("random", random), ("choc", best)):
        ours = sessions(policy, Params(actions="slate"), 10_000, seed=5)["return"]
        assert abs(ours.mean() - value) < 4 * ours.std() / np.sqrt(ours.size)


def test_greed_falls_below_random_where_satisfaction_matters() -> None:
    params = Params.informative(actions="slate")
    random, best = expected_returns(params)
    scores = {
        policy: sessions(policy, params, 10_000, seed=6)["return"].mean()
        for policy in ("random", "choc", "kale")
    }
    assert abs(scores["random"] - random) < 0.01 * random
    assert scores["choc"] < 0.9 * scores["random"]
    assert scores["random"] < scores["kale"] < 0.98 * best


def test_the_optimum_does_not_hang_on_the_grid() -> None:
    params = Params.informative()
    np.testing.assert_allclose(
        expected_returns(params, points=151), expected_returns(params), rtol=1e-3
    )


def test_anchors_are_per_step() -> None:
    random, best = LongTermSatisfaction(Params()).anchors()
    assert random.score == pytest.approx(15.8, abs=0.1)
    assert best.score == pytest.approx(18.94, abs=0.05)


# The rest of the contract ---------------------------------------------------------------------


@pytest.mark.parametrize("actions", ["continuous", "slate", "discrete"])
def test_gymnasiums_checker_is_content(actions: str) -> None:
    check_env(gym.make(NAME, actions=actions).unwrapped, skip_render_check=True)


def test_a_target_shows_the_nearest_candidates() -> None:
    rng = np.random.default_rng(0)
    bait, target = rng.random((200, 20)), rng.random((200, 1)).astype(np.float32)
    bait[:, 7] = bait[:, 3]
    np.testing.assert_array_equal(
        dynamics.nearest(target, bait, 4),
        np.argsort(np.abs(bait - target), axis=1, kind="stable")[:, :4],
    )


def test_the_observation_tracks_exposure_from_outside() -> None:
    sim = LongTermSatisfaction(Params(innovation_stddev=0.0))
    rng = np.random.default_rng(0)
    users = sim.arrive(rng, 30)
    start = users.exposure.copy()
    for t in range(1, 6):
        info = sim.step(users, rng.random((30, 1)), rng).info
        observation = sim.observe(users)
        hidden = users.exposure - 0.7**t * start
        np.testing.assert_allclose(observation[:, 0], hidden, rtol=0, atol=1e-6)
    np.testing.assert_allclose(observation[:, 1], info["clickbait"], rtol=1e-6)
    np.testing.assert_allclose(observation[:, 2], np.log(info["observed_engagement"]), rtol=1e-5)
    np.testing.assert_allclose(observation[:, 3], 5 / 60, rtol=1e-6)
    bait = users.clickbait
    stats = np.stack([bait.min(1), bait.mean(1), bait.max(1)], 1)
    np.testing.assert_allclose(observation[:, 4:], stats, rtol=1e-6)


def test_a_session_has_sixty_pages_and_the_next_follows() -> None:
    env = gym.make_vec(NAME, num_envs=3, actions="discrete")
    env.reset(seed=0)
    ends = [env.step(np.zeros(3, np.int64))[2] for _ in range(120)]
    np.testing.assert_array_equal(np.flatnonzero(np.all(ends, 1)), [59, 119])


def test_empty_slots_after_the_first_do_not_matter() -> None:
    env = gym.make(NAME, actions="slate", slate_size=3, short_slates=True).unwrapped
    env.reset(seed=0)
    assert env.step(np.array([4, -1, -1]))[4]["shown"] == 1
    with pytest.raises(ValueError, match="-1"):
        env.step(np.array([-1, 4, 4]))


def test_ten_thousand_documents_work() -> None:
    env = gym.make_vec(NAME, num_envs=4, num_candidates=10_000)
    env.reset(seed=0)
    *_, info = env.step(np.full((4, 1), 0.25, np.float32))
    np.testing.assert_allclose(info["clickbait"], 0.25, atol=2e-3)


def test_same_seed_same_sessions_and_another_seed_others() -> None:
    def run(seed: int) -> np.ndarray:
        env = gym.make_vec(NAME, num_envs=8)
        env.reset(seed=seed)
        return np.concatenate([env.step(np.ones((8, 1), np.float32))[0] for _ in range(100)])

    np.testing.assert_array_equal(run(1), run(1))
    assert (run(1) != run(2)).any()


def test_the_state_is_told_in_words() -> None:
    env = gym.make(NAME, render_mode="ansi", slate_size=2).unwrapped
    env.reset(seed=0)
    assert "60 pages left" in str(env.render())
    env.step(np.ones(1, np.float32))
    assert "clicked the first: engagement" in str(env.render())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_candidates", 0),
        ("slate_size", 21),
        ("actions", "pages"),
        ("memory_discount", 1.0),
        ("exposure_memory", -0.1),
        ("innovation_stddev", -1.0),
        ("time_budget", 0),
        ("sensitivity", float("nan")),
        ("catalogue", (0.5,) * 20),
    ],
)
def test_impossible_parameters_are_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=name):
        Params(**{name: value})


def test_a_catalogue_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="catalogue"):
        Params(resample_documents=False, catalogue=(0.5,))
    with pytest.raises(ValueError, match="catalogue"):
        Params(resample_documents=False, catalogue=(1.5,) * 20)


def test_the_optimum_of_one_document_is_that_of_showing_it():
    """A catalogue of one leaves no choice: random and best agree, and more clickbait is another."""
    params = [
        Params(num_candidates=1, resample_documents=False, catalogue=(bait,)) for bait in (0.0, 1.0)
    ]
    returns = [expected_returns(p) for p in params]
    for random, best in returns:
        assert random == pytest.approx(best)
    assert returns[0] != pytest.approx(returns[1], rel=0.05)
