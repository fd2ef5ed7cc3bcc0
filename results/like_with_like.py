"""The other memories with the cure at the paper's length: the figures of T in plan.md.

``python results/planned.py FOLDER k --arms ...`` makes the runs, ``python
results/like_with_like.py pack FOLDER`` writes ``cure_others.jsonl.gz``; without arguments it prints
every figure from there and from K's runs. Two arms are compared at the end where all their runs
have reached it, and at the last point of the curve that all of them have otherwise.
"""

import sys
from functools import cache

import cure
import length
import more_seeds
import numpy as np
from committed import RESULTS, by_arm
from cure import CURED, LOW, OURS
from delayed import Gap, verdict
from scored import LAST, Scored, pack_or_print, row, scored
from standing import Arms, grouped, stands, with_holm

from lser.report.stats import iqm, mean_t
from lser.report.style import interval, listing, name_of, number

FILE, KEY, EARNED = RESULTS / "cure_others.jsonl.gz", "metric", "learning_metric"
GOALS = f"her{CURED}"  # its critics value goals, not rewards
ORDER = tuple(f"{memory}{CURED}" for memory in ("per", "der", "aer", "ser", "her", "shuffled-code"))


def known() -> bool:
    """Whether it has been run."""
    return FILE.is_file()


@cache
def runs() -> Scored:
    """T's runs by arm."""
    found = by_arm(FILE)
    return scored({arm: found[arm] for arm in ORDER if arm in found})


@cache
def standing() -> Arms:
    """K's and T's runs, to be compared where two arms stand."""
    return Arms({**cure.runs().runs, **runs().runs})


def primary() -> dict[str, tuple[Gap, float]]:
    """LSER minus each other memory of T, all with the cure, with Holm's p."""
    return with_holm({arm: standing().gap(OURS, arm, KEY) for arm in runs().runs})


def plain(arm: str) -> str:
    """The memory of an arm, as a reader knows it."""
    return name_of(arm.removesuffix(CURED))


def reading() -> str:
    """What T says in words; nothing before it has been run."""
    if not known():
        return ""
    arms, every = list(runs().runs), _ordered()
    better = "; ".join(f"{plain(a)} {interval(standing().improvement(OURS, a, KEY))}" for a in arms)
    ends = [f"{plain(a)} {standing().mean(a, KEY):.3f}" for a in every if standing().whole(a)]
    return (
        "**The other memories with the cure at the paper's length** (T of the plan; VirtualTaobao, "
        f"90,000 sessions, {_seeds()} of K's seeds, {runs().whole()}). LSER minus each, all with "
        f"what they can have of the cure, Holm over the {len(arms)}: "
        f"{standing().told(OURS, primary(), plain)}. LSER stands **{stands(_by_verdict())}**. "
        f"{standing().cut(plain)}{_not_run()}Final CTR "
        f"of what is complete, K's arms among them with twenty seeds: {listing(ends)}; LSER on "
        f"T's seeds {_on_these():.3f}. Without and with the cure (S and Z: other seeds, no test): "
        f"{both_ways()}. A run of LSER ends above one of the other memory with probability: "
        f"{better}. Runs that end more than a tenth of the possible below their "
        f"best: {listing([_fell(arm) for arm in every])}. {believed()}"
    )


def _seeds() -> int:
    return min(len(of) for of in runs().runs.values())


def _on_these() -> float:
    """LSER's final CTR on the seeds that T has."""
    seeds = set.intersection(*(set(of) for of in runs().runs.values()))
    return float(np.mean([x for at, x in standing().scores(OURS, KEY).items() if at in seeds]))


def _not_run() -> str:
    left = [plain(arm) for arm in ORDER if arm not in runs().runs]
    return f"Not run in T: {listing(left)}. " if left else ""


def both_ways() -> str:
    """Memories without and with the cure, by S and Z on other seeds; LSER itself is left out."""
    found = {arm: _printed(arm) for arm in _ordered() if arm != OURS and standing().whole(arm)}
    return listing(
        [
            f"{plain(arm)} {printed:.3f} and {standing().mean(arm, KEY):.3f}"
            for arm, printed in found.items()
            if printed is not None
        ]
    )


def _printed(arm: str) -> float | None:
    """The final CTR of the same memory in S, where it is complete."""
    memory, arms = arm.removesuffix(CURED), _as_printed()
    return arms.mean(memory, KEY) if memory in arms and arms.whole(memory) else None


def _as_printed() -> Arms:
    """S's runs, with Z's of the same memories where there are some."""
    more = more_seeds.runs().runs if more_seeds.known() else {}
    return Arms({**length.runs().runs, **more})


def in_short() -> str:
    """The tests in a sentence for the first screens; nothing before T has been run."""
    if not known():
        return ""
    return (
        f"**Like with like** (T of the plan, {_seeds()} seeds): LSER minus each other memory, all "
        "with what they can have of the cure, after Holm: "
        f"{standing().told(OURS, primary(), plain)}. {standing().cut(plain)}{_not_run()}"
    )


def beaten() -> list[str]:
    """The memories that LSER stands above after Holm, and where if not at the end.

    An error where it is below one.
    """
    found = _by_verdict()
    if "below" in found or "above" not in found:
        raise ValueError("the records no longer say that LSER with the cure stands above others")
    return found["above"]


def level() -> list[str]:
    """Those that are not separated from it."""
    return _by_verdict().get("not separated", [])


def _by_verdict() -> dict[str, list[str]]:
    def named(arm: str) -> str:
        cut = "" if standing().whole(OURS, arm) else f" (at {standing().sessions(OURS, arm):,})"
        return f"{plain(arm)}{cut}"

    return grouped({arm: verdict(one.mean, p) for arm, (one, p) in primary().items()}, named)


def believed() -> str:
    """What the critics of T's arms believe, as S read it; K's runs recorded no values."""
    found = {plain(arm): runs().belief(arm) for arm in runs().runs if arm != GOALS}
    excess = listing([f"{name} {one.excess:.2f}" for name, one in found.items()])
    follows = listing([f"{name} {number(one.follows, digits=2)}" for name, one in found.items()])
    return (
        f"Values as a share of their bound minus rewards as a share of the largest, last {LAST} "
        f"points, median run: {excess}; over runs values follow what is earned (Spearman) by "
        f"{follows} (HER's are of goals; K's runs recorded none)."
    )


def _ordered() -> list[str]:
    """Every arm with the cure, the best first."""
    return sorted(standing().runs, key=lambda arm: -standing().mean(arm, KEY))


def _scored(arm: str) -> Scored:
    """The study of an arm alone, read at its own end."""
    return Scored({arm: standing().runs[arm]})


def _fell(arm: str) -> str:
    """How many runs of an arm fell, beside those as printed of the same memory."""
    here, memory = _scored(arm).fallen(arm), arm.removesuffix(CURED)
    said = f"{plain(arm)} {sum(here.values())} of {len(here)}"
    if memory not in _as_printed().runs:
        return said
    printed = Scored({memory: _as_printed().runs[memory]}).fallen(memory)
    return f"{said} (as printed {sum(printed.values())} of {len(printed)})"


def table() -> str:
    """Every arm where it stands, with the share of the possible as printed (S, Z) beside it."""
    lines = [
        "| with the cure | sessions | CTR [95 %] | interquartile mean | lowest run | share of the "
        f"possible | as printed | reward per step | while learning | below {LOW:g} | LSER minus it "
        "[95 %] | over training | seeds |",
        "|" + "---|" * 13,
    ]
    for arm in _ordered():
        ends = list(standing().scores(arm, KEY).values())
        own, before = _scored(arm), _printed(arm)
        share = "" if before is None else f"{own.scale.share(before):.2f}"
        gap = "" if arm == OURS else interval(standing().gap(OURS, arm, KEY).mean, sign=True)
        lines.append(
            row(
                *(plain(arm), f"{standing().sessions(arm):,}", interval(mean_t(ends))),
                *(f"{iqm(ends):.3f}", f"{min(ends):.3f}"),
                *(f"{own.scale.share(float(np.mean(ends))):.2f}", share),
                *(f"{standing().mean(arm, key):.3f}" for key in ("reward_per_step", EARNED)),
                *(str(sum(end < LOW for end in ends)), gap, f"{own.area(arm):.3f}"),
                str(len(ends)),
            )
        )
    return "\n".join(lines)


def block() -> str:
    """The words and the table."""
    return f"{reading()}\n\n{table()}" if known() else ""


if __name__ == "__main__":
    pack_or_print(sys.argv[1:], "cure", FILE, block)
