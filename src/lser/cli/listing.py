"""``lser simulators`` and ``lser memories``: what there is."""

import json
from typing import Any, NamedTuple

import tyro
from rich.table import Table

from lser.cli.display import stdout
from lser.experiments.catalogue import SIMULATORS
from lser.simulators import SIMULATORS as IDS
from lser.simulators import simulator_type
from lser.simulators.virtual_taobao.weights import WeightsError


class Described(NamedTuple):
    """A memory in one line."""

    what: str
    needs: str
    source: str


DESCRIBED: dict[str, Described] = {
    "lser": Described(
        "the best of the query's bucket of similar observations", "query", "the LSER paper"
    ),
    "uniform": Described("the newest transitions, drawn uniformly", "nothing", "Lin 1992"),
    "per": Described(
        "large TD errors come back more often, with importance weights",
        "TD errors",
        "Schaul et al. 2015",
    ),
    "der": Described(
        "prioritized shards with zones for whole successful sessions",
        "TD errors, session ends",
        "Luo & Li 2020",
    ),
    "der-uniform": Described(
        "the same zones, uniform draws in a shard", "session ends", "the LSER paper's reading"
    ),
    "aer": Described(
        "of some random candidates, those most like the query", "query", "Sun, Zhou & Li 2020"
    ),
    "ser": Described(
        "half the newest, half chosen from all of the past",
        "nothing (surprise: TD errors; reward: session ends)",
        "Isele & Cosgun 2018",
    ),
    "her": Described(
        "missed goals replayed as goals the session reached",
        "session ends, goals in the observation",
        "Andrychowicz et al. 2017",
    ),
    "her-balanced": Described(
        "half of a batch rewarded, half not", "nothing", "the LSER paper's reading"
    ),
    "lser-p": Described("ablation: LSER that forgets by age", "query", "the LSER paper"),
    "lser-s": Described("ablation: LSER's store, uniform draws", "nothing", "the LSER paper"),
    "reward-top": Described("control: reward order without locality", "nothing", "this project"),
    "random-code": Described("control: buckets without locality", "nothing", "this project"),
}


def memories(argv: list[str]) -> int:
    """List the memories."""
    as_json = tyro.cli(_memories, args=argv, prog="lser memories")
    rows: list[dict[str, Any]] = [
        {"name": name, **described._asdict()} for name, described in DESCRIBED.items()
    ]
    return _show(rows, as_json, "Memories (lser train SIMULATOR MEMORY)")


def _memories(json: bool = False) -> bool:
    """List the memories: what each replays, what it needs, and where it comes from.

    Args:
        json: Print JSON lines.
    """
    return json


def simulators(argv: list[str]) -> int:
    """List the simulators."""
    as_json = tyro.cli(_simulators, args=argv, prog="lser simulators")
    identities = {entry.name: identity for identity, entry in IDS.items()}
    rows = [_simulator_row(name, params, identities[name]) for name, params in SIMULATORS.items()]
    return _show(rows, as_json, "Simulators (gym.make, gym.make_vec, lser train)")


def _simulators(json: bool = False) -> bool:
    """List the simulators with the scores of random actions and of the best known policy.

    Args:
        json: Print JSON lines.
    """
    return json


def _simulator_row(name: str, params: type, identity: str) -> dict[str, Any]:
    kind = simulator_type(name)
    row = {"name": name, "id": identity, "metric": kind.metric.name}
    try:
        random, best = kind(params()).anchors()
    except WeightsError:  # VirtualTaobao without its weights
        return {**row, "random": "", "best known": "", "source": "weights not found"}
    return {
        **row,
        "random": f"{random.score:.4g}",
        "best known": f"{best.score:.4g} ({best.policy})",
        "source": best.source,
    }


def _show(rows: list[dict[str, Any]], as_json: bool, title: str) -> int:
    if as_json:
        for row in rows:
            print(json.dumps(row))
        return 0
    table = Table(title=title)
    for column in rows[0]:
        table.add_column(column, overflow="fold", no_wrap=column in ("name", "id", "metric"))
    for row in rows:
        table.add_row(*map(str, row.values()))
    stdout().print(table)
    return 0
