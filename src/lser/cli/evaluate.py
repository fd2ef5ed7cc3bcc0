"""``lser evaluate``: the agent of a finished run on fresh users."""

import math
from pathlib import Path
from typing import Annotated

import tyro

from lser.cli.json_text import json_text
from lser.experiments import records
from lser.experiments.experiment import from_json
from lser.files import taken_from
from lser.report.closing import fill


def evaluate(argv: list[str]) -> int:
    """Score a finished run's agent, or with ``--log`` the policies of a shop."""
    if any(argument.partition("=")[0] == "--log" for argument in argv):
        from lser.cli.evaluate_log import evaluate_log

        return evaluate_log(argv)
    return int(tyro.cli(_evaluate, args=argv, prog="lser evaluate"))


def _evaluate(
    record: Annotated[Path, tyro.conf.Positional],
    /,
    sessions: int = 1_000,
    seed: int = 12_345,
    json_output: Annotated[bool, tyro.conf.arg(name="json")] = False,
) -> int:
    """Score the agent of a finished run on fresh users, without exploration.

    With --log SHOP instead of a record: what the log of an online shop says about its policies.

    example: lser evaluate runs/bazaar/lser-seed0-1a2b3c4d --sessions 5000

    Args:
        record: Folder of the record.
        sessions: Users' sessions to run.
        seed: Seed of the users.
        json_output: Print JSON.
    """
    if sessions < 1:
        raise ValueError(f"--sessions must be at least 1, got {sessions}")
    from lser.experiments.build import anchors, build_agent, make_env
    from lser.experiments.run import AGENT
    from lser.training import checkpoint
    from lser.training import evaluate as score
    from lser.training.evaluate import metric_of

    experiment = from_json(records.load(record).experiment)
    state = checkpoint.load_latest(record / AGENT)
    if state is None:
        raise ValueError(f"{record} holds no trained agent; is the run finished?")
    env = make_env(experiment, min(sessions, 256), evaluation=True)
    agent = build_agent(experiment, env, seed=0)
    with taken_from(record / AGENT):
        agent.load_state_dict(state)
    result = score(agent, env, sessions=sessions, seed=seed)
    name = metric_of(env).name
    share, scale = math.nan, ""
    if (known := anchors(experiment)) is not None:
        random, best = known
        share = (result.metric - random.score) / (best.score - random.score)
        scale = f"0 is random actions, {random.score:.4g}; 1 is {best.policy}, {best.score:.4g}"
    if json_output:
        told = {"metric_name": name, **result._asdict(), "share_of_possible": share}
        print(json_text(told))
    else:
        print(f"{name:<20}{result.metric:10.4f} ± {result.metric_se:.4f}")
        if not math.isnan(share):  # both anchors are known
            print(f"{'share of possible':<20}{share:10.4f}")
        print(f"{'reward per session':<20}{result.reward:10.4f} ± {result.reward_se:.4f}")
        print(f"{'pages per session':<20}{result.length:10.4f} ± {result.length_se:.4f}")
        if not math.isnan(share):
            print(fill(f"share of possible: {scale}"))
    return 0
