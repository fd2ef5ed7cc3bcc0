"""RecSim's numbers: single steps with their draws, a few whole sessions, statistics of many."""

import importlib
from pathlib import Path
from typing import Any

import numpy as np

from lser.simulators.recsim.interest_evolution import Params as Interest
from lser.simulators.recsim.long_term_satisfaction import Params as Satisfaction
from lser.simulators.recsim.long_term_satisfaction.dynamics import Constants
from parity.golden.files import Array, mean_and_error, ratio, save_arrays, save_json
from parity.originals import documents, interest_evolution, long_term_satisfaction
from parity.recsim import _next_draws, _top

SESSIONS, KEPT = 500, 150  # behind the statistics, and kept one by one
STEP_COLUMNS = ("episode", "choice_uniform", "flip_uniform", "selected", "reward")
STEP_COLUMNS += ("budget_after", "done")
TRANSITION_COLUMNS = ("u_c", "budget", "quality", "flip_uniform", "clicked", "watch_time")
TRANSITION_COLUMNS += ("u_c_after", "budget_after", "done")
IE_METRICS = ("return", "length", "clicks", "quality_sum", "final_budget")
IE_METRICS += ("final_u_mean", "final_u_absmean", "final_u_max")
LTS_METRICS = ("return", "length", "log_return_sum", "clipped_return", "max_reward", "cb_mean")
LTS_METRICS += ("final_npe", "final_satisfaction", "initial_npe")
LTS_COLUMNS = ("npe", "satisfaction", "clickbait", "z_engagement", "z_innovation", "budget")
LTS_COLUMNS += ("engagement", "engagement_obs", "npe_after", "satisfaction_after")
LTS_COLUMNS += ("budget_after", "done")
IE_CASES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "ie_20x3": ({"nc": 20, "k": 3, "resample": True, "seed": 0}, ("random", "greedy_interest")),
    "ie_20x3_fixed": ({"nc": 20, "k": 3, "resample": False, "seed": 2}, ("first_k",)),
    "ie_10x2": ({"nc": 10, "k": 2, "resample": True, "seed": 4}, ("short_slate", "max_cluster")),
}
LTS_CASES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "lts_20x1": ({"nc": 20, "k": 1, "resample": True, "seed": 0}, ("random", "npe_threshold")),
    "lts_20x1_fixed": ({"nc": 20, "k": 1, "resample": False, "seed": 0}, ("choc",)),
}


def _common(config: dict[str, Any]) -> dict[str, Any]:
    """Our arguments for a recorded configuration."""
    return {
        "num_candidates": config["nc"],
        "slate_size": config["k"],
        "resample_documents": config["resample"],
        "actions": "slate",
        "catalogue_seed": config["seed"],
    }


def _shown(policy: str, scores: dict[str, Array], k: int, rng: np.random.Generator) -> Array:
    """The slate of `policy`, which orders the candidates by one of `scores`."""
    if policy == "first_k":
        return np.arange(k)
    if policy == "short_slate":
        return np.arange(k - 1)
    return _top(scores[policy] if policy in scores else rng.random((1, scores["size"].size)), k)[0]


def choice_table(count: int, rng: np.random.Generator) -> dict[str, Array]:
    """Click probabilities of the original's choice model on `count` drawn users and slates."""
    choice = importlib.import_module("recsim.choice_model")
    module = importlib.import_module("recsim.environments.interest_evolution")
    interests = rng.uniform(-1, 1, (count, 20))
    clusters, probabilities = np.full((count, 5), -1, np.int8), np.zeros((count, 6))
    model = choice.MultinomialProportionalChoiceModel({"no_click_mass": 1.0, "min_normalizer": -1})
    for i in range(count):
        size = int(rng.integers(1, 6))
        clusters[i, :size] = rng.integers(20, size=size)
        model.score_documents(module.IEvUserState(interests[i]), np.eye(20)[clusters[i, :size]])
        scores = np.append(model.scores, model.score_no_click)
        probabilities[i, [*range(size), 5]] = scores / scores.sum()
    return {
        "choice_interests": interests,
        "choice_clusters": clusters,
        "choice_probs": probabilities,
    }


def interest_traces(sessions: int, rng: np.random.Generator) -> tuple[dict[str, Any], Array]:
    """Whole sessions with every draw, and the same steps as rows of TRANSITION_COLUMNS."""
    env = interest_evolution(Interest(actions="slate"), 5)
    steps, transitions, shown, ends = [], [], [], []
    for episode in range(sessions):
        env.reset()
        state, done = env.user_model._user_state, False
        first = state.user_interests.copy()
        while not done:
            before, budget = state.user_interests.copy(), float(state.time_budget)
            slate = rng.permutation(20)[:3]
            cluster = documents(env, "cluster_id")[0, slate]
            quality = documents(env, "quality")[0, slate]
            choice, flip = _next_draws().random_sample(2)
            *_, responses, done = env.step(slate)
            clicked = [i for i, response in enumerate(responses) if response.clicked]
            chosen = clicked[0] if clicked else -1
            reward = responses[chosen].watch_time if clicked else 0.0
            flip = flip if clicked else np.nan
            steps.append((episode, choice, flip, chosen, reward, state.time_budget, done))
            slot = max(chosen, 0)
            of, after = cluster[slot], state.user_interests
            row = (before[of], budget, quality[slot], np.nan_to_num(flip), len(clicked), reward)
            transitions.append((*row, after[of], state.time_budget, done))
            shown.append((slate, cluster, quality))
        ends.append((first, state.user_interests.copy()))
    parts = dict(
        zip(("slate", "slate_cluster", "slate_quality"), zip(*shown, strict=True), strict=True)
    )
    arrays = {name: np.array(value) for name, value in parts.items()}
    arrays["slate"], arrays["slate_cluster"] = (
        arrays["slate"].astype(np.int16),
        arrays["slate_cluster"].astype(np.int8),
    )
    firsts, lasts = zip(*ends, strict=True)
    arrays |= {"u0": np.array(firsts), "uT": np.array(lasts), "steps": np.array(steps, float)}
    return {"step_cols": np.array(STEP_COLUMNS), **arrays}, np.array(transitions, float)


def interest_sessions(config: dict[str, Any], policy: str, seed: int) -> tuple[Array, Array, Array]:
    """Sessions (n, metrics) and the counts of clicks by position and cluster, none last."""
    env, rng = (
        interest_evolution(Interest(**_common(config)), config["seed"]),
        np.random.default_rng(seed),
    )
    table = np.zeros((SESSIONS, len(IE_METRICS)))
    position, by_cluster = np.zeros((SESSIONS, config["k"] + 1)), np.zeros((SESSIONS, 21))
    for number, row in enumerate(table):
        env.reset()
        state, done = env.user_model._user_state, False
        while not done:
            cluster = documents(env, "cluster_id")
            scores = {
                "greedy_interest": state.user_interests[cluster],
                "max_cluster": cluster,
                "size": cluster,
            }
            *_, responses, done = env.step(_shown(policy, scores, config["k"], rng))
            row[1] += 1
            clicked = [i for i, response in enumerate(responses) if response.clicked]
            position[number, clicked[0] if clicked else -1] += 1
            by_cluster[number, responses[clicked[0]].cluster_id if clicked else -1] += 1
            for i in clicked:
                row[[0, 2, 3]] += responses[i].watch_time, 1, responses[i].quality
        last = state.user_interests
        row[4:] = state.time_budget, last.mean(), np.abs(last).mean(), last.max()
    return table, position, by_cluster


def record_interest_evolution(folder: Path) -> list[Path]:
    """Tables, traces and statistics of interest evolution."""
    rng = np.random.default_rng(11)
    traces, transitions = interest_traces(4, rng)
    tables = choice_table(80, rng)
    tables |= {"trans": transitions[:160], "trans_cols": np.array(TRANSITION_COLUMNS)}
    ends = transitions[transitions[:, -1] == 1]
    tables["trans"] = np.concatenate((tables["trans"], ends))
    stats: dict[str, Any] = {}
    kept: dict[str, Any] = {"columns": np.array(IE_METRICS)}
    for name, (config, policies) in IE_CASES.items():
        stats[name] = {"config": config, "policies": {}}
        if not config["resample"]:
            env = interest_evolution(Interest(**_common(config)), config["seed"])
            env.reset()
            found = (documents(env, key)[0].tolist() for key in ("cluster_id", "quality"))
            stats[name]["catalogue"] = dict(zip(("cluster", "quality"), found, strict=True))
        for number, policy in enumerate(policies):
            seed = 10 * (config["seed"] + 1) + number
            table, position, cluster = interest_sessions(config, policy, seed)
            kept[f"{name}/{policy}"] = table[:KEPT].astype(np.float32)
            steps = table[:, 1]
            stats[name]["policies"][policy] = {
                "n_episodes": SESSIONS,
                "seed": seed,
                "metrics": {m: mean_and_error(table[:, i]) for i, m in enumerate(IE_METRICS)},
                "ctr": ratio(table[:, 2], steps),
                "average_quality": ratio(table[:, 3], table[:, 2]),
                "reward_per_step": ratio(table[:, 0], steps),
                "frac_click_by_position": (position.sum(0) / steps.sum()).tolist(),
                "frac_click_by_cluster": (cluster.sum(0) / steps.sum()).tolist(),
            }
    return [
        save_arrays(folder / "ie_tables.npz", tables),
        save_arrays(folder / "ie_traces.npz", traces),
        save_json(folder / "ie_stats.json", stats),
        save_arrays(folder / "ie_episodes.npz", kept),
    ]


def satisfaction_table(count: int, rng: np.random.Generator) -> Array:
    """Steps (count, LTS_COLUMNS) with their draws, ends of sessions among them."""
    env, rows, done = long_term_satisfaction(Satisfaction(actions="slate"), 6), [], True
    for _ in range(count):
        if done:
            env.reset()
        state = env.user_model._user_state
        slate = rng.integers(20, size=1)
        bait = documents(env, "clickbait_score")[0, slate[0]]
        before = (state.net_positive_exposure, state.satisfaction)
        draws, budget = _next_draws().standard_normal(2), state.time_budget
        *_, responses, done = env.step(slate)
        seen = responses[0].create_observation()["engagement"]
        after = (state.net_positive_exposure, state.satisfaction, state.time_budget, done)
        rows.append((*before, bait, *draws, budget, responses[0].engagement, seen, *after))
    return np.array(rows, float)


def satisfaction_sessions(config: dict[str, Any], policy: str, seed: int) -> tuple[Array, Array]:
    """Sessions (n, metrics) and what happened at every step (n, 60, 3)."""
    env = long_term_satisfaction(Satisfaction(**_common(config)), config["seed"])
    rng = np.random.default_rng(seed)
    table, profile = np.zeros((SESSIONS, len(LTS_METRICS))), np.zeros((SESSIONS, 60, 3))
    for row, steps in zip(table, profile, strict=True):
        env.reset()
        state, done, baits = env.user_model._user_state, False, []
        row[8] = state.net_positive_exposure
        for step in steps:
            bait = documents(env, "clickbait_score")
            aware = bait if state.net_positive_exposure > 0 else -bait
            scores = {"choc": bait, "npe_threshold": aware, "size": bait}
            slate = _shown(policy, scores, config["k"], rng)
            *_, responses, done = env.step(slate)
            step[:] = responses[0].engagement, state.net_positive_exposure, state.satisfaction
            baits.append(bait[0, slate[0]])
        assert done
        reward = steps[:, 0]
        row[:6] = (
            reward.sum(),
            len(steps),
            np.log(reward).sum(),
            np.minimum(reward, 100.0).sum(),
            reward.max(),
            np.mean(baits),
        )
        row[6:8] = state.net_positive_exposure, state.satisfaction
    return table, profile


def record_long_term_satisfaction(folder: Path) -> list[Path]:
    """Tables and statistics of long-term satisfaction."""
    names = [name for name in Constants._fields if name not in ("max_engagement", "time_budget")]
    names = [name for name in names if name != "exposure_memory"]
    tables = {
        "cols": np.array(LTS_COLUMNS),
        "rows": satisfaction_table(190, np.random.default_rng(12)),
        "param_names": np.array(names),
        "param_values": np.array([getattr(Satisfaction(), name) for name in names]),
    }
    stats: dict[str, Any] = {}
    kept: dict[str, Any] = {"columns": np.array(LTS_METRICS)}
    for name, (config, policies) in LTS_CASES.items():
        stats[name] = {"config": config, "policies": {}}
        if not config["resample"]:
            env = long_term_satisfaction(Satisfaction(**_common(config)), config["seed"])
            env.reset()
            stats[name]["catalogue"] = documents(env, "clickbait_score")[0].tolist()
        for number, policy in enumerate(policies):
            seed = 70 + number
            table, profile = satisfaction_sessions(config, policy, seed)
            kept[f"{name}/{policy}"] = table[:KEPT].astype(np.float32)
            mean, error = profile.mean(0), profile.std(0, ddof=1) / np.sqrt(SESSIONS)
            each = {}
            for i, metric in enumerate(("reward", "npe", "sat")):
                each[f"{metric}_mean"] = mean[:, i].tolist()
                each[f"{metric}_se"] = error[:, i].tolist()
            stats[name]["policies"][policy] = {
                "n_episodes": SESSIONS,
                "seed": seed,
                "metrics": {m: mean_and_error(table[:, i]) for i, m in enumerate(LTS_METRICS)},
                "reward_per_step": ratio(table[:, 0], table[:, 1]),
                "step_profile": each,
            }
    return [
        save_arrays(folder / "lts_tables.npz", tables),
        save_json(folder / "lts_stats.json", stats),
        save_arrays(folder / "lts_episodes.npz", kept),
    ]


def record(folder: Path) -> list[Path]:
    """Record both environments of RecSim."""
    np.random.seed(13)  # noqa: NPY002  where the original draws from
    return record_interest_evolution(folder) + record_long_term_satisfaction(folder)
