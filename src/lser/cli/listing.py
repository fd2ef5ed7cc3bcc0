"""``lser simulators`` and ``lser memories``: what there is."""

import json
from typing import Any, NamedTuple

import tyro
from rich.console import Console
from rich.table import Table

from lser.experiments.catalogue import MEMORIES, SIMULATORS
from lser.simulators import SIMULATORS as IDS
from lser.simulators.weights import WeightsError


class Described(NamedTuple):
    """A memory in one line."""

    what: str
    needs: str
    source: str


DESCRIBED: dict[str, Described] = {
    "lser": Described(
        "best rewards from states like the current one", "query", "Chen et al. 2021 (the paper)"
    ),
    "uniform": Described("everything alike, oldest out first", "nothing", "Lin 1992"),
    "per": Described("large TD errors more often", "TD errors", "Schaul et al. 2016"),
    "der": Described(
        "prioritized shards with zones of successful sessions",
        "TD errors, session ends",
        "Luo & Li 2020",
    ),
    "der-uniform": Described("zones without priorities", "session ends", "the paper's reading"),
    "aer": Described("of a larger draw, those most like now", "query", "Sun, Zhou & Li 2020"),
    "ser": Described(
        "half recent, half a ranked long-term memory", "nothing by default", "Isele & Cosgun 2018"
    ),
    "her": Described(
        "goals relabelled with what the session later reached",
        "session ends, goals",
        "Andrychowicz et al. 2017",
    ),
    "her-balanced": Described("half with reward, half without", "nothing", "the paper's reading"),
    "lser-p": Described("ablation: LSER that forgets by age", "query", "the paper"),
    "lser-s": Described("ablation: LSER's store, uniform draws", "nothing", "the paper"),
    "reward-top": Described("control: reward order without locality", "nothing", "this project"),
    "random-code": Described("control: buckets without locality", "nothing", "this project"),
}


def memories(argv: list[str]) -> int:
    """List the memories."""
    as_json = tyro.cli(_memories, args=argv, prog="lser memories")
    rows: list[dict[str, Any]] = [
        {"name": name, **described._asdict()} for name, described in DESCRIBED.items()
    ]
    assert list(DESCRIBED) == list(MEMORIES)
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
    rows = []
    for (name, params), (identity, (module, prefix)) in zip(
        SIMULATORS.items(), _in_order(), strict=True
    ):
        rows.append(_simulator_row(name, params, identity, module, prefix))
    return _show(rows, as_json, "Simulators (gym.make, gym.make_vec, lser train)")


def _simulators(json: bool = False) -> bool:
    """List the simulators with the scores of random actions and of the best known policy.

    Args:
        json: Print JSON lines.
    """
    return json


def _in_order() -> list[tuple[str, tuple[str, str]]]:
    """The Gymnasium ids in the order of the catalogue's names."""
    by_module = {module.replace("_", "-"): (name, (module, p)) for name, (module, p) in IDS.items()}
    return [by_module[name] for name in SIMULATORS]


def _simulator_row(
    name: str, params: type, identity: str, module: str, prefix: str
) -> dict[str, Any]:
    from importlib import import_module

    kind = getattr(import_module(f"lser.simulators.{module}"), prefix)
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
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*map(str, row.values()))
    Console().print(table)
    return 0
