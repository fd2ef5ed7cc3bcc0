"""``lser simulators``, ``lser memories`` and ``lser agents``: what there is."""

from typing import Any

import tyro
from rich.table import Table
from rich.text import Text

from lser.catalogue import AGENTS, MEMORIES, SIMULATORS, Entry
from lser.cli.display import stdout
from lser.cli.json_text import json_text
from lser.simulators import SIMULATORS as IDS
from lser.simulators.virtual_taobao.weights import WeightsError

NEEDS = {
    "clicks": "rewards that count clicks",
    "items": "the catalogue, where one is known",
    "sight": "what the simulator alone knows",
}


def memories(argv: list[str]) -> int:
    """List the memories."""
    as_json = tyro.cli(_memories, args=argv, prog="lser memories")
    rows: list[dict[str, Any]] = [
        {
            "name": entry.name,
            "what": entry.about,
            "needs": ", ".join(sorted(entry.needs)).replace("_", " ") or "nothing",
            "source": entry.source,
        }
        for entry in MEMORIES.values()
    ]
    note = "Start with lser-steady and uniform; reward-top shows what reward order does alone."
    return _show(rows, as_json, f"Memories (lser train SIMULATOR MEMORY). {note}")


def _memories(json: bool = False) -> bool:
    """List the memories: what each replays, what it needs, and where it comes from.

    Args:
        json: Print JSON lines.
    """
    return json


def agents(argv: list[str]) -> int:
    """List the agents."""
    as_json = tyro.cli(_agents, args=argv, prog="lser agents")
    rows: list[dict[str, Any]] = [
        {
            "name": entry.name,
            "title": entry.title,
            "what": entry.about,
            "needs": ", ".join(NEEDS[need] for need in sorted(entry.needs)) or "nothing",
            "source": entry.source,
        }
        for entry in AGENTS.values()
    ]
    if not as_json:
        rows = [_narrow_agent(row) for row in rows]
    note = "Unless named: click-model on bazaar, ddpg elsewhere; ridge is what to beat."
    return _show(rows, as_json, f"Agents (lser train SIMULATOR MEMORY AGENT). {note}")


def _agents(json: bool = False) -> bool:
    """List the agents: what each learns, what it needs to know, and where it comes from.

    Args:
        json: Print JSON lines.
    """
    return json


def _narrow_agent(row: dict[str, Any]) -> dict[str, Any]:
    """The row for 80 columns: what it needs under what it is."""
    what = f"{row['title']}: {row['what']}"
    if row["needs"] != "nothing":
        what += f"; uses {row['needs']}"
    return {"name": row["name"], "what": what, "source": row["source"]}


def simulators(argv: list[str]) -> int:
    """List the simulators."""
    as_json = tyro.cli(_simulators, args=argv, prog="lser simulators")
    identities = {entry.name: identity for identity, entry in IDS.items()}
    rows = [_simulator_row(entry, identities.get(name, "")) for name, entry in SIMULATORS.items()]
    if not as_json:
        rows = [_narrow(row) for row in rows]
    return _show(rows, as_json, "Simulators: names for lser train, ids for gym.make and make_vec")


def _simulators(json: bool = False) -> bool:
    """List the simulators with the scores of random actions and of the best known policy.

    Args:
        json: Print JSON lines.
    """
    return json


def _narrow(row: dict[str, Any]) -> dict[str, Any]:
    """The row for 80 columns: the id under the name, where the best comes from under its score."""
    return {
        "name, id": f"{row['name']}\n{row['id']}",
        "metric": row["metric"],
        "random": row["random"],
        "best known": f"{row['best known']}\n{row['source']}".strip(),
    }


def _simulator_row(entry: Entry, identity: str) -> dict[str, Any]:
    kind = entry.load().simulator_type
    row = {"name": entry.name, "id": identity, "metric": kind.metric.name}
    try:
        random, best = kind(entry.params()).anchors()
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
            print(json_text(row))
        return 0
    console = stdout()
    console.print(Text(title))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 1 if "name, id" in rows[0] else 0, 0))
    for column in rows[0]:
        whole = column in ("name", "name, id", "metric", "random")
        table.add_column(column, overflow="fold", no_wrap=whole)
    for row in rows:
        table.add_row(*(Text(str(cell)) for cell in row.values()))
    console.print(table)
    return 0
