"""The rows that pages show first, of all that the table of results has."""

from collections.abc import Sequence
from dataclasses import replace

from lser.report.table import Table

SHORT = {  # as pages call them; the other rows are further in
    "VirtualTaobao, new seeds, noise 0.1, 15,000 sessions, CTR": "VirtualTaobao, 15,000 sessions",
    "VirtualTaobao, newer seeds, 90,000 sessions, CTR": "VirtualTaobao, 90,000 sessions",
    "VirtualTaobao, 90,000 sessions, with the cure, CTR": (
        "VirtualTaobao, 90,000 sessions, all with the cure"
    ),
    "RecSim interest evolution, reward: quality, 500 sessions, reward per step (trained on)": (
        "RecSim interest evolution, paid by quality"
    ),
    "RecSim interest evolution, 1,000 sessions, reward per step (trained on)": (
        "RecSim interest evolution, paid by watch time"
    ),
    "RecSim long-term satisfaction, sensitivity 0.1, 500 sessions, reward per step": (
        "RecSim long-term satisfaction, effects delayed"
    ),
    "RecoGym, 300 sessions, mean of 5 worlds, reward per step (trained on)": (
        "RecoGym, paid by expected clicks"
    ),
    "Bazaar map, mean of 12 cells, CTR": "Bazaar, mean of 12 settings",
}


def short(table: Table, *, without: Sequence[str]) -> Table:
    """The rows that pages show first, less the columns that they leave out."""
    kept = [at for at, name in enumerate(table.columns) if name not in without]
    found = {row[0].removesuffix(" †"): row for row in table.rows}
    return replace(
        table,
        caption=table.caption.replace("of this table", "of the whole table"),
        columns=tuple(table.columns[at] for at in kept),
        rows=tuple((SHORT[title], *(found[title][at] for at in kept[1:])) for title in SHORT),
        marks=(),
    )
