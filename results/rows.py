"""The rows that pages show first, of all that the table of results has."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import regions
import regions_large
import taobao_tuning
import tuned_alike
from delayed import Gap, verdict

from lser.report.overview import BANDIT, CONSTANT, SIGNS
from lser.report.style import name_of, number
from lser.report.table import Table

OWN = " ‡"  # of rows whose test is their own
TAOBAO, BAZAAR = "VirtualTaobao, 90,000 sessions, all with the cure", "Bazaar"

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
}


class Planned(NamedTuple):
    """A row from a study that reads its runs by itself: LSER beside others, each tested once."""

    title: str
    after: str  # the row that it stands behind
    shares: Mapping[str, float]
    """Of the possible, by memory and known policy."""
    lead: tuple[Gap, float]
    """LSER minus uniform, with Holm's p over LSER minus each."""

    def cell(self, name: str) -> str:
        """What stands in a column."""
        share = next((x for one, x in self.shares.items() if name_of(one) == name), None)
        if share is None:
            return ""
        sign = SIGNS.get(verdict(self.lead[0].mean, self.lead[1])) if name == "LSER" else None
        return f"{number(share, digits=2)} {sign}" if sign else number(share, digits=2)


def planned(known: Mapping[str, float]) -> list[Planned]:
    """Memories tuned alike, and the regions of Bazaar; `known` policies are VirtualTaobao's."""
    taobao = taobao_tuning.alike()
    run = next(iter(taobao.runs[taobao_tuning.OURS].values()))
    ends = {m: taobao_tuning.share(run, taobao.mean(m, "metric")) for m in taobao.runs
            if taobao.whole(m)}  # fmt: skip
    gaps, adjusted, _ = regions.pays()
    arms = (regions.OURS, *regions.CONTROLS)
    far = {arm: regions.level(regions.LONG_SIGHTED, arm) for arm in arms}
    large = {arm: regions_large.HELD.level(regions_large.FAR, arm) for arm in arms}
    tuned = {memory: tuned_alike.mean(memory).estimate for memory in tuned_alike.memories()}
    return [
        Planned(
            "VirtualTaobao, 15,000 sessions, each tuned by the same grid",
            TAOBAO,
            {**ends, **known},
            taobao_tuning.leads()["uniform"],
        ),
        Planned(
            "Bazaar, discount .99, batches of 32, mean of 6 settings",
            BAZAAR,
            {**far, BANDIT: regions.bandit(regions.LONG_SIGHTED)},
            (gaps["uniform"], adjusted["uniform"]),
        ),
        Planned(
            "Bazaar, discount .99, batches of 128, mean of 6 settings",
            BAZAAR,
            {**large, BANDIT: regions.bandit(regions_large.FAR)},
            regions_large.by_discount()[0]["uniform"],
        ),
        Planned(
            "Bazaar, each tuned by the same grid",
            BAZAAR,
            {
                **tuned,
                CONSTANT: tuned_alike.known("constant"),
                BANDIT: tuned_alike.mean(tuned_alike.BANDIT).estimate,
            },
            tuned_alike.leads()["uniform"],
        ),
    ]


def short(table: Table, *, without: Sequence[str]) -> Table:
    """The rows that pages show first, less the columns that they leave out."""
    kept = [at for at, name in enumerate(table.columns) if name not in without]
    columns = tuple(table.columns[at] for at in kept)
    found = {row[0].removesuffix(" †"): row for row in table.rows}
    rows = [(SHORT[title], *(found[title][at] for at in kept[1:])) for title in SHORT]
    cured = dict(zip(columns, next(row for row in rows if row[0] == TAOBAO), strict=True))
    for one in planned({name: float(cured[name]) for name in (CONSTANT, BANDIT)}):
        titles = [row[0] for row in rows]
        place = titles.index(one.after) + 1 if one.after in titles else len(rows)
        rows.insert(place, (one.title + OWN, *(one.cell(name) for name in columns[1:])))
    note = (
        f" Rows with{OWN} have tests of their own, LSER minus each other memory with Holm's "
        "correction over these, and only LSER has a sign."
    )
    return replace(
        table,
        caption=table.caption.replace("of this table", "of the whole table") + note,
        columns=columns,
        rows=tuple(rows),
        marks=(),
    )
