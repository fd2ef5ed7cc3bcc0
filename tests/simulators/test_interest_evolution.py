"""Interest evolution does what RecSim 0.2.4 does: tables, traces, and distributions.

Distributions are compared by z scores with |z| < 4 (two-sided p = 6e-5 each) and by two-sample
Kolmogorov-Smirnov tests with p > 1e-4; with about 700 and 150 such comparisons a correct simulator
would fail one of them with a few per cent over the choice of seeds. The seeds are fixed.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from scipy.stats import ks_2samp

import lser  # noqa: F401  registers the environments
from lser.experiments.studies.platforms import REWARD, scale_of
from lser.simulators.recsim.interest_evolution import Catalogue, Params, dynamics
from lser.simulators.recsim.interest_evolution.simulator import InterestEvolution, Users

NAME = "lser/InterestEvolution-v0"
SESSIONS = 1500
METRICS = ("return", "length", "clicks", "quality_sum", "final_budget")
METRICS += ("final_u_mean", "final_u_absmean", "final_u_max")


# Policies of the recorded sessions ------------------------------------------------------------


def top(score: np.ndarray, k: int) -> np.ndarray:
    return np.argsort(-score, axis=1, kind="stable")[:, :k]


def ratio(interest: np.ndarray, means: np.ndarray, level: float, k: int) -> np.ndarray:
    """Dinkelbach's maximiser of the expected gain over the expected time lost."""
    weight = 1.0 + interest
    gain = 4.0 * (1.0 - level * (1.0 - (0.9 / 3.4) * means))
    best = np.zeros(len(weight))
    while True:
        slate = top(weight * (gain - best[:, None]), k)
        w, g = (np.take_along_axis(x, slate, 1) for x in (weight, gain))
        last, best = best, ((w * g).sum(1) - level) / (w.sum(1) + 2.0)
        if np.allclose(best, last, rtol=0, atol=1e-12):
            return slate


def slates(
    policy: str, sim: InterestEvolution, users: Users, rng: np.random.Generator, t: int
) -> np.ndarray:
    """The slate (n, k) that `policy` shows, -1 for an empty slot."""
    (n, m), k = users.cluster.shape, sim.params.slate_size
    interest = np.take_along_axis(users.interests, users.cluster.astype(np.int64), 1)
    means = sim.cluster_means[users.cluster]
    if policy == "alternate":
        policy = "max_cluster" if t % 2 == 0 else "greedy_interest"
    if policy.startswith("ratio_"):
        return ratio(interest, means, float(policy[6:]), k)
    first = np.tile(np.arange(k), (n, 1))
    choices: dict[str, Callable[[], np.ndarray]] = {
        "random": lambda: top(rng.random((n, m)), k),
        "first_k": lambda: first,
        "duplicate_first": lambda: np.zeros_like(first),
        "short_slate": lambda: np.where(first == k - 1, -1, first),
        "greedy_interest": lambda: top(interest, k),
        "anti_interest": lambda: top(-interest, k),
        "max_cluster": lambda: top(users.cluster, k),
        "min_cluster": lambda: top(-users.cluster, k),
        "greedy_quality": lambda: top(sim.quality(users), k),
        "gumbel_interest": lambda: top(3 * interest + rng.gumbel(size=(n, m)), k),
        "best_duplicated": lambda: np.repeat(ratio(interest, means, 3.0, 1), k, axis=1),
    }
    return choices[policy]()


def sessions(policy: str, params: Params, n: int, seed: int) -> dict[str, np.ndarray]:
    """Per-session metrics of `n` users, and their counts of clicks by position and cluster."""
    rng, sim = np.random.default_rng(seed), InterestEvolution(params)
    users = sim.arrive(rng, n)
    out = {name: np.zeros(n) for name in METRICS}
    out["by_position"] = np.zeros((n, params.slate_size + 1))
    out["by_cluster"] = np.zeros((n, params.num_clusters + 1))
    alive = np.arange(n)
    t = 0
    while alive.size:
        outcome = sim.step(users, slates(policy, sim, users, rng, t), rng)
        info, t = outcome.info, t + 1
        out["return"][alive] += info["watch_time"]
        out["length"][alive] += 1
        out["clicks"][alive] += info["clicks"]
        out["quality_sum"][alive] += info["quality"]
        out["by_position"][alive, info["selected"]] += 1  # -1 is the last column: no click
        out["by_cluster"][alive, info["cluster"]] += 1
        done = alive[outcome.terminated]
        last = users.interests[outcome.terminated]
        out["final_budget"][done] = users.budget[outcome.terminated]
        out["final_u_mean"][done] = last.mean(1)
        out["final_u_absmean"][done] = np.abs(last).mean(1)
        out["final_u_max"][done] = last.max(1)
        stay = ~outcome.terminated
        alive = alive[stay]
        users = Users(**{name: value[stay] for name, value in vars(users).items()})
    return out


# Parity ---------------------------------------------------------------------------------------


def golden_params(entry: dict[str, Any]) -> Params:
    config = entry["config"]
    overrides = {}
    for part in ("um", "ds", "gin_us"):
        overrides.update(config.get(part, {}))
    if not config["resample"]:
        c = entry["catalogue"]
        overrides["catalogue"] = Catalogue(tuple(c["cluster"]), tuple(c["quality"]))
    return Params(
        num_candidates=config["nc"],
        slate_size=config["k"],
        resample_documents=config["resample"],
        actions="slate",
        **overrides,
    )


def ratio_of_sums(top: np.ndarray, bottom: np.ndarray) -> tuple[float, float]:
    value = top.sum() / bottom.sum()
    spread = (top - value * bottom).std(ddof=1) / np.sqrt(len(top)) / bottom.mean()
    return value, spread


def test_choice_probabilities_are_the_recorded_ones(golden: Path) -> None:
    table = np.load(golden / "ie_tables.npz")
    ours = dynamics.choice_probabilities(
        table["choice_interests"], table["choice_clusters"].astype(np.int64), 1.0, -1.0
    )
    np.testing.assert_allclose(ours, table["choice_probs"], rtol=0, atol=1e-12)


def test_transitions_are_the_recorded_ones(golden: Path) -> None:
    table = np.load(golden / "ie_tables.npz")
    row = dict(zip(table["trans_cols"], table["trans"].T, strict=True))
    p = Params()
    click = row["clicked"] == 1
    watch = np.where(click, dynamics.watched(row["budget"], p.video_length), 0.0)
    moved = dynamics.moved_interest(
        row["u_c"], row["flip_uniform"], p.alpha_x_intercept, p.alpha_y_intercept
    )
    utility = dynamics.received_utility(row["u_c"], row["quality"], -1.0, 0.0, 1.0)
    left = dynamics.budget_after_click(row["budget"], watch, utility, p.user_update_alpha)
    left = np.where(click, left, row["budget"] - p.step_penalty)
    exact = {"rtol": 0, "atol": 1e-12}
    np.testing.assert_allclose(watch, row["watch_time"], **exact)
    np.testing.assert_allclose(np.where(click, moved, row["u_c"]), row["u_c_after"], **exact)
    np.testing.assert_allclose(left, row["budget_after"], **exact)
    np.testing.assert_array_equal(left <= 0, row["done"] == 1)


def test_recorded_sessions_replay_without_a_mismatch(golden: Path) -> None:
    trace = np.load(golden / "ie_traces.npz")
    steps = dict(zip(trace["step_cols"], trace["steps"].T, strict=True))
    sim = InterestEvolution(Params())
    key = np.zeros(1, np.uint64)
    episode = -1
    for i in range(len(trace["steps"])):
        if steps["episode"][i] != episode:
            episode = int(steps["episode"][i])
            interests, budget = trace["u0"][[episode]].copy(), np.array([200.0])
        draws = np.array([[steps["choice_uniform"][i], np.nan_to_num(steps["flip_uniform"][i])]])
        response = dynamics.advance(
            interests,
            budget,
            trace["slate_cluster"][[i]].astype(np.int16),
            key,
            np.array([[0, 1, 2]]),
            draws,
            sim.constants,
            sim.cluster_means,
            trace["slate_quality"][i],
        )
        assert response.selected[0] == steps["selected"][i]
        assert response.terminated[0] == (steps["done"][i] == 1)
        assert response.watch_time[0] == pytest.approx(steps["reward"][i], rel=0, abs=1e-12)
        assert budget[0] == pytest.approx(steps["budget_after"][i], rel=0, abs=1e-10)
        if response.terminated[0]:
            np.testing.assert_allclose(interests[0], trace["uT"][episode], rtol=0, atol=1e-12)


def recorded() -> list[str]:
    from conftest import GOLDEN

    stats = json.loads((GOLDEN / "ie_stats.json").read_text())
    return [f"{name}/{policy}" for name in stats for policy in stats[name]["policies"]]


@pytest.mark.parametrize("case", recorded())
def test_sessions_are_distributed_as_recorded(golden: Path, case: str) -> None:
    name, policy = case.split("/")
    entry = json.loads((golden / "ie_stats.json").read_text())[name]
    theirs = entry["policies"][policy]
    n = min(SESSIONS, theirs["n_episodes"])
    ours = sessions(policy, golden_params(entry), n, seed=theirs["seed"])
    z = {}

    def compare(metric: str, value: float, se: float, other: float, other_se: float) -> None:
        z[metric] = (value - other) / max(np.hypot(se, other_se), 1e-12)

    for metric, m in theirs["metrics"].items():
        x = ours[metric]
        compare(metric, x.mean(), x.std(ddof=1) / np.sqrt(n), m["mean"], m["se"])
    for metric, top, bottom in (
        ("ctr", "clicks", "length"),
        ("average_quality", "quality_sum", "clicks"),
        ("reward_per_step", "return", "length"),
    ):
        other = theirs[metric]
        compare(metric, *ratio_of_sums(ours[top], ours[bottom]), other["value"], other["se"])
    scale = np.sqrt(n / theirs["n_episodes"])  # the recorded fractions come without errors
    for by in ("position", "cluster"):
        for i, other in enumerate(theirs[f"frac_click_by_{by}"]):
            value, se = ratio_of_sums(ours[f"by_{by}"][:, i], ours["length"])
            if value * ours["length"].sum() >= 100 or other * ours["length"].sum() >= 100:
                compare(f"{by} {i}", value, se, other, se * scale)  # else not nearly normal
    assert {key: round(value, 2) for key, value in z.items() if not abs(value) < 4} == {}
    episodes = np.load(golden / "ie_episodes.npz")
    for i, metric in enumerate(episodes["columns"]):
        p = ks_2samp(episodes[case][:, i], ours[str(metric)].astype(np.float32)).pvalue
        assert p > 1e-4, (metric, p)


def test_a_drawn_catalogue_is_recsims_with_the_same_seed(golden: Path) -> None:
    entry = json.loads((golden / "ie_stats.json").read_text())["ie_20x3_fixed"]
    sim = InterestEvolution(Params(resample_documents=False, catalogue_seed=2))
    users = sim.arrive(np.random.default_rng(0), 3)
    np.testing.assert_array_equal(users.cluster[1], entry["catalogue"]["cluster"])
    np.testing.assert_array_equal(sim.quality(users)[2], entry["catalogue"]["quality"])


# The rest of the contract ---------------------------------------------------------------------


@pytest.mark.parametrize("actions", ["continuous", "slate", "discrete"])
def test_gymnasiums_checker_is_content(actions: str) -> None:
    check_env(gym.make(NAME, actions=actions).unwrapped, skip_render_check=True)
    extras = {"observe_response": True, "observe_step": True}
    check_env(gym.make(NAME, actions=actions, **extras).unwrapped, skip_render_check=True)


def test_a_weight_vector_shows_the_best_distinct_candidates() -> None:
    rng = np.random.default_rng(0)
    clusters = rng.integers(0, 20, (200, 20)).astype(np.int16)
    weights = rng.uniform(-1, 1, (200, 20)).astype(np.float32)
    scores = np.take_along_axis(weights, clusters.astype(np.int64), 1)
    np.testing.assert_array_equal(
        dynamics.rank(weights, clusters, 5), np.argsort(-scores, axis=1, kind="stable")[:, :5]
    )


def test_the_observation_is_interests_and_the_candidates_clusters() -> None:
    sim = InterestEvolution(Params(observe_response=True, observe_step=True))
    rng = np.random.default_rng(0)
    users = sim.arrive(rng, 50)
    info = sim.step(users, np.zeros((50, 20), np.float32), rng).info
    observation = sim.observe(users)
    assert observation.shape == (50, 43)
    np.testing.assert_array_equal(observation[:, :20], users.interests.astype(np.float32))
    counts = np.stack([np.bincount(row, minlength=20) for row in users.cluster])
    np.testing.assert_array_equal(observation[:, 20:40], counts)
    np.testing.assert_array_equal(observation[:, 40], info["clicks"])
    np.testing.assert_array_equal(observation[:, 41], info["quality"].astype(np.float32))
    np.testing.assert_allclose(observation[:, 42], 0.01)


def test_candidates_are_uniform_over_clusters_and_qualities_normal_around_their_means() -> None:
    sim = InterestEvolution(Params(num_candidates=200, slate_size=1))
    users = sim.arrive(np.random.default_rng(1), 1000)
    counts = np.bincount(users.cluster.ravel(), minlength=20)
    assert np.abs((counts - 1e4) / np.sqrt(1e4 * 0.95)).max() < 4.5
    noise = ((sim.quality(users) - sim.cluster_means[users.cluster]) / 0.1).ravel()
    assert abs(noise.mean()) < 4 / np.sqrt(noise.size)
    assert abs(noise.var() - 1) < 4 * np.sqrt(2 / noise.size)
    assert abs(np.corrcoef(noise[:-1], noise[1:])[0, 1]) < 4 / np.sqrt(noise.size)


def test_the_quality_of_a_click_is_the_one_a_privileged_policy_sees() -> None:
    sim = InterestEvolution(Params(actions="slate", no_click_mass=-0.99))
    rng = np.random.default_rng(2)
    users = sim.arrive(rng, 64)
    seen = sim.quality(users)
    info = sim.step(users, np.tile([3, 3, 7], (64, 1)), rng).info
    rows = np.flatnonzero(info["clicks"])
    document = info["slate"][rows, info["selected"][rows]]
    np.testing.assert_array_equal(info["quality"][rows], seen[rows, document])
    assert rows.size > 50


def test_an_empty_slate_costs_the_step_penalty() -> None:
    env = gym.make_vec(NAME, num_envs=4, actions="slate", short_slates=True, step_penalty=2.5)
    env.reset(seed=0)
    _, reward, *_, info = env.step(np.full((4, 3), -1))
    assert (reward == 0).all()
    assert (info["budget"] == 197.5).all()
    assert (info["shown"] == 0).all()


def test_same_seed_same_sessions_and_another_seed_others() -> None:
    def run(seed: int) -> np.ndarray:
        env = gym.make_vec(NAME, num_envs=8)
        env.reset(seed=seed)
        action = np.random.default_rng(0).uniform(-1, 1, (8, 20)).astype(np.float32)
        return np.concatenate([env.step(action)[0] for _ in range(100)])

    np.testing.assert_array_equal(run(1), run(1))
    assert (run(1) != run(2)).any()


def test_ten_thousand_documents_work() -> None:
    env = gym.make_vec(NAME, num_envs=4, num_candidates=10_000, slate_size=50)
    env.reset(seed=0)
    observation, *_, info = env.step(np.linspace(-1, 1, 80, dtype=np.float32).reshape(4, 20))
    assert info["slate"].shape == (4, 50)
    np.testing.assert_allclose(observation[:, 20:].sum(1), 20, rtol=1e-5)


def test_the_state_is_told_in_words() -> None:
    env = gym.make(NAME, render_mode="ansi").unwrapped
    env.reset(seed=0)
    assert "likes clusters" in str(env.render())
    env.step(np.ones(20, np.float32))
    assert "shown: document" in str(env.render())


def test_anchors_are_known_for_the_searched_settings_only() -> None:
    random, best = InterestEvolution(Params(observe_step=True)).anchors()
    assert random.score < best.score
    assert np.isnan(InterestEvolution(Params(video_length=5.0)).anchors()[1].score)
    assert np.isnan(InterestEvolution(Params(num_candidates=21)).anchors()[1].score)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_candidates", 0),
        ("slate_size", 21),
        ("slate_size", 0),
        ("actions", "pages"),
        ("num_clusters", 1),
        ("min_normalizer", -0.5),
        ("no_click_mass", -2.0),
        ("video_length", 0.0),
        ("step_penalty", 0.0),
        ("time_budget", float("nan")),
        ("quality_std", -1.0),
        ("catalogue", Catalogue((0,) * 20, (0.0,) * 20)),
    ],
)
def test_impossible_parameters_are_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(ValueError, match="min_normalizer" if "mass" in name else name):
        Params(**{name: value})


def test_a_catalogue_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="catalogue"):
        Params(resample_documents=False, catalogue=Catalogue((0,), (0.0,)))
    with pytest.raises(ValueError, match="clusters"):
        Params(resample_documents=False, catalogue=Catalogue((20,) * 20, (0.0,) * 20))


@pytest.mark.parametrize(("policy", "end"), [("random", "random"), ("ratio_1.5", "best")])
def test_the_scale_of_what_quality_pays_is_what_policies_make(policy, end):
    params = Params(num_candidates=20, slate_size=3, actions="slate")
    ours = sessions(policy, params, 1000, seed=5)
    paid, se = ratio_of_sums(ours["quality_sum"], ours["length"])
    platform = {"name": "interest-evolution", **vars(Params(reward="quality"))}
    known = scale_of({"simulator": platform}, REWARD)
    assert abs(getattr(known, end).score - paid) < 4 * se + 0.005
