"""Both RecSim simulators beside the original package (recsim 0.2.4).

First the same draws into both, step by step, where everything has to agree to rounding; then
fresh sessions of each, compared by their means. The original's dynamics run untouched.
"""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lser.simulators.recsim.interest_evolution import dynamics as ie_dynamics
from lser.simulators.recsim.interest_evolution import simulator as ie
from lser.simulators.recsim.long_term_satisfaction import dynamics as lts_dynamics
from lser.simulators.recsim.long_term_satisfaction import simulator as lts
from parity.originals import (
    documents,
    interest_evolution,
    long_term_satisfaction,
    recsim,
)

Array = NDArray[Any]
Row = dict[str, Any]

IE_CONFIGS: dict[str, dict[str, Any]] = {
    "default": {},
    "slate 1": {"slate_size": 1},
    "fixed catalogue": {"resample_documents": False},
    "shifted": {
        "num_candidates": 10,
        "slate_size": 4,
        "no_click_mass": 2.0,
        "alpha_x_intercept": 0.8,
        "alpha_y_intercept": 0.5,
        "min_utility": -2.0,
        "video_length": 7.0,
        "document_quality_factor": 0.5,
        "min_normalizer": -1.5,
    },
}
LTS_CONFIGS: dict[str, dict[str, Any]] = {
    "default": {},
    "slate 3": {"slate_size": 3},
    "fixed catalogue": {"resample_documents": False},
    "sensitive": {"sensitivity": 0.25, "memory_discount": 0.9, "choc_stddev": 0.5},
}


def _next_draws() -> Any:
    """A copy of the global generator the original draws from: what it will draw next."""
    copy = np.random.RandomState()
    copy.set_state(np.random.get_state())  # noqa: NPY002
    return copy


def _random_slate(rng: np.random.Generator, candidates: int, size: int) -> Array:
    """Any slate the original accepts: repeats, and shorter ones."""
    return rng.integers(candidates, size=int(rng.integers(1, size + 1)))


def replay_interest_evolution(params: ie.Params, seed: int, steps: int) -> int:
    """Steps out of `steps` in which ours differs from the original on the same draws."""
    env, sim = interest_evolution(params, seed), ie.InterestEvolution(params)
    rng, mismatches, done = np.random.default_rng(seed), 0, True
    for _ in range(steps):
        if done:
            env.reset()
        state = env.user_model._user_state
        before = state.user_interests[None].copy(), np.array([float(state.time_budget)])
        slate = _random_slate(rng, params.num_candidates, params.slate_size)
        cluster, quality = documents(env, "cluster_id"), documents(env, "quality")[0]
        draws = _next_draws().random_sample((1, 2))
        *_, responses, done = env.step(slate)
        ours = ie_dynamics.advance(
            *before,
            cluster.astype(np.int16),
            np.zeros(1, np.uint64),
            slate[None],
            draws,
            sim.constants,
            sim.cluster_means,
            quality,
        )
        clicked = [i for i, response in enumerate(responses) if response.clicked] or [-1]
        same = clicked[0] == ours.selected[0] and done == ours.terminated[0]
        same &= np.allclose(before[0][0], state.user_interests, rtol=0, atol=1e-12)
        same &= np.allclose(before[1][0], state.time_budget, rtol=0, atol=1e-10)
        mismatches += not same
    return mismatches


def replay_long_term_satisfaction(params: lts.Params, seed: int, steps: int) -> int:
    """Steps out of `steps` in which ours differs from the original on the same draws."""
    env = long_term_satisfaction(params, seed)
    sim = lts.LongTermSatisfaction(params)
    rng, mismatches, done = np.random.default_rng(seed), 0, True
    for _ in range(steps):
        if done:
            env.reset()
        state = env.user_model._user_state
        values = (state.net_positive_exposure, state.satisfaction, state.time_budget)
        exposure, satisfaction, budget = (np.array([float(value)]) for value in values)
        slate = _random_slate(rng, params.num_candidates, params.slate_size)
        bait = documents(env, "clickbait_score")
        draws = _next_draws().standard_normal((1, 2))
        *_, responses, done = env.step(slate)
        ours = lts_dynamics.advance(
            exposure,
            satisfaction,
            budget,
            np.zeros((1, 3)),
            bait,
            slate[None],
            draws,
            sim.constants,
        )
        after = (state.net_positive_exposure, state.satisfaction, state.time_budget)
        same = np.allclose([exposure[0], satisfaction[0], budget[0]], after, rtol=0, atol=1e-12)
        same &= np.isclose(ours.engagement[0], responses[0].engagement, rtol=1e-12)
        mismatches += not (same and done == ours.terminated[0])
    return mismatches


def _top(score: Array, k: int) -> Array:
    return np.argsort(-score, axis=1, kind="stable")[:, :k]


def ie_slate(policy: str, interest: Array, cluster: Array, k: int, rng: Any) -> Array:
    """The slate (n, k) that `policy` shows, given the interest in and cluster of candidates."""
    scores = {"random": rng.random(cluster.shape), "interest": interest, "cluster": cluster}
    return _top(scores[policy], k)


def lts_slate(policy: str, bait: Array, k: int, rng: Any) -> Array:
    """The slate (n, k) that `policy` shows, given the candidates' clickbait."""
    return _top({"random": rng.random(bait.shape), "choc": bait, "kale": -bait}[policy], k)


IE_METRICS = ("return", "length", "clicks", "quality", "final budget", "final |interest|")
LTS_METRICS = ("return", "log return", "final exposure", "final satisfaction")


def original_ie_sessions(params: ie.Params, policy: str, count: int, seed: int) -> Array:
    """Whole sessions on the original, (count, metrics)."""
    env, rng = interest_evolution(params, seed), np.random.default_rng(seed)
    table = np.zeros((count, len(IE_METRICS)))
    for row in table:
        env.reset()
        state, done = env.user_model._user_state, False
        while not done:
            cluster = documents(env, "cluster_id")
            interest = state.user_interests[cluster]
            *_, responses, done = env.step(
                ie_slate(policy, interest, cluster, params.slate_size, rng)[0]
            )
            row[1] += 1
            for response in responses:
                if response.clicked:
                    row[[0, 2, 3]] += response.watch_time, 1, response.quality
        row[4:] = state.time_budget, np.abs(state.user_interests).mean()
    return table


def our_ie_sessions(params: ie.Params, policy: str, count: int, seed: int) -> Array:
    """Whole sessions on ours, (count, metrics)."""
    sim, rng = ie.InterestEvolution(params), np.random.default_rng(seed)
    users, table, rows = sim.arrive(rng, count), np.zeros((count, 6)), np.arange(count)
    while rows.size:
        interest = np.take_along_axis(users.interests, users.cluster.astype(np.int64), 1)
        slate = ie_slate(policy, interest, users.cluster, params.slate_size, rng)
        _, done, info = sim.step(users, slate, rng)
        table[rows, 0] += info["watch_time"]
        table[rows, 1] += 1
        table[rows, 2] += info["clicks"]
        table[rows, 3] += info["quality"]
        table[rows, 4] = users.budget
        table[rows, 5] = np.abs(users.interests).mean(1)
        rows = rows[~done]
        users = ie.Users(**{name: value[~done] for name, value in vars(users).items()})
    return table


def original_lts_sessions(params: lts.Params, policy: str, count: int, seed: int) -> Array:
    """Whole sessions on the original, (count, metrics)."""
    env, rng = long_term_satisfaction(params, seed), np.random.default_rng(seed)
    table = np.zeros((count, len(LTS_METRICS)))
    for row in table:
        env.reset()
        state, done = env.user_model._user_state, False
        while not done:
            bait = documents(env, "clickbait_score")
            *_, responses, done = env.step(lts_slate(policy, bait, params.slate_size, rng)[0])
            row[:2] += responses[0].engagement, np.log(responses[0].engagement)
        row[2:] = state.net_positive_exposure, state.satisfaction
    return table


def our_lts_sessions(params: lts.Params, policy: str, count: int, seed: int) -> Array:
    """Whole sessions on ours, (count, metrics)."""
    sim, rng = lts.LongTermSatisfaction(params), np.random.default_rng(seed)
    users, table = sim.arrive(rng, count), np.zeros((count, len(LTS_METRICS)))
    done = np.zeros(count, np.bool_)
    while not done.any():  # all sessions have the same length
        slate = lts_slate(policy, users.clickbait, params.slate_size, rng)
        _, done, info = sim.step(users, slate, rng)
        table[:, 0] += info["engagement"]
        table[:, 1] += np.log(info["engagement"])
    table[:, 2], table[:, 3] = users.exposure, users.satisfaction
    return table


def _rows(policy: str, metrics: tuple[str, ...], ours: Array, theirs: Array) -> list[Row]:
    rows = []
    for i, metric in enumerate(metrics):
        a, b = ours[:, i], theirs[:, i]
        error = np.hypot(a.std() / np.sqrt(len(a)), b.std() / np.sqrt(len(b)))
        z = (a.mean() - b.mean()) / max(float(error), 1e-12)
        row = {"metric": metric, "ours": a.mean(), "original": b.mean(), "z": z}
        rows.append({"policy": policy} | row)
    return rows


def _exact(policy: str, steps: int, mismatches: int) -> Row:
    row = {"policy": policy, "metric": f"mismatches in {steps} steps on the same draws"}
    return row | {"ours": mismatches, "original": 0, "z": np.inf if mismatches else 0.0}


def compare(seed: int | None = None, *, count: int = 100, steps: int = 2000) -> list[Row]:
    """Rows of (policy, metric, ours, original, z) on fresh seeds."""
    root, rows = np.random.default_rng(seed), []
    np.random.seed(int(root.integers(2**31)))  # noqa: NPY002  where the original draws from
    for name, config in IE_CONFIGS.items():
        fresh = int(root.integers(2**31))
        params = ie.Params(actions="slate", catalogue_seed=fresh, **config)
        title = f"interest evolution, {name}"
        rows.append(_exact(title, steps, replay_interest_evolution(params, fresh, steps)))
        for policy in ("random", "interest", "cluster"):
            ours = our_ie_sessions(params, policy, 10 * count, int(root.integers(2**31)))
            theirs = original_ie_sessions(params, policy, count, fresh)
            rows += _rows(f"{title}, {policy}", IE_METRICS, ours, theirs)
    for name, config in LTS_CONFIGS.items():
        fresh = int(root.integers(2**31))
        satisfaction = lts.Params(actions="slate", catalogue_seed=fresh, **config)
        title = f"long-term satisfaction, {name}"
        wrong = replay_long_term_satisfaction(satisfaction, fresh, steps)
        rows.append(_exact(title, steps, wrong))
        for policy in ("random", "choc", "kale"):
            ours = our_lts_sessions(satisfaction, policy, 10 * count, int(root.integers(2**31)))
            theirs = original_lts_sessions(satisfaction, policy, count, fresh)
            rows += _rows(f"{title}, {policy}", LTS_METRICS, ours, theirs)
    return rows


def original_step_rate(environment: str, seconds: float = 2.0) -> float:
    """Steps per second of the original at 20 documents with random slates.

    `environment` is "interest_evolution" (slate 3) or "long_term_satisfaction" (slate 1).
    """
    size = 3 if environment == "interest_evolution" else 1
    setting = {"num_candidates": 20, "slate_size": size, "resample_documents": True, "seed": 0}
    env, rng = recsim(environment).create_environment(setting), np.random.default_rng(0)
    slates = rng.permuted(np.tile(np.arange(20), (1000, 1)), axis=1)[:, :size]
    env.reset()
    steps, start = 0, time.process_time()
    while time.process_time() - start < seconds:
        for slate in slates:
            if env.step(slate)[2]:
                env.reset()
        steps += len(slates)
    return steps / (time.process_time() - start)
