"""Every memory as printed at the paper's length: the figures of S in plan.md.

``python results/planned.py FOLDER s`` makes the runs, ``python results/length.py pack FOLDER``
writes ``length.jsonl.gz``; without arguments it prints every figure from there. Two arms are
compared at the end where all their runs have reached it, and at the last point of the curve that
all of them have otherwise.
"""

import sys
from functools import cache

import numpy as np
from committed import RESULTS, by_arm
from delayed import Gap, gap, verdict
from scored import LAST, OUTCOMES, Scored, levels, pack_or_print, row, scored
from standing import Arms, chance, with_holm

from lser.experiments.studies import plan
from lser.report.stats import mean_t
from lser.report.style import interval, listing, name_of, number

FILE = RESULTS / "length.jsonl.gz"
OURS, REFERENCE, KEY = "lser", "uniform", "metric"
GOALS = "her"  # its critics value goals, not rewards


@cache
def runs() -> Scored:
    """The runs by arm, in the order of the plan."""
    found, order = by_arm(FILE), dict.fromkeys(one.label for one in plan("length", "paper", 1))
    return scored({arm: found[arm] for arm in order if arm in found})


@cache
def standing() -> Arms:
    """The same, to be compared where two arms stand."""
    return Arms(runs().runs)


def known() -> bool:
    """Whether it has been run."""
    return FILE.is_file()


def others() -> list[str]:
    """What LSER is compared with beside uniform."""
    return [arm for arm in runs().runs if arm not in (OURS, REFERENCE)]


def primary() -> Gap:
    """Final CTR, LSER minus uniform."""
    return standing().gap(OURS, REFERENCE, KEY)


def secondary() -> dict[str, tuple[Gap, float]]:
    """LSER minus each other memory where both stand, with Holm's p."""
    return with_holm({arm: standing().gap(OURS, arm, KEY) for arm in others()})


def outcome() -> str:
    """The primary test in one word: above, below or not separated."""
    return verdict(primary().mean, primary().p)


def sooner() -> Gap:
    """The average over training, LSER minus uniform."""
    return gap(runs().areas(OURS), runs().areas(REFERENCE))


def believed() -> str:
    """What critics believe, in words: read after the test, to see why runs fall."""
    told = {arm: runs().belief(arm) for arm in runs().runs if arm != GOALS}
    excess = listing([f"{name_of(a)} {b.excess:.2f}" for a, b in told.items()])
    follows = listing([f"{name_of(a)} {number(b.follows, digits=2)}" for a, b in told.items()])
    return (
        "**Why they fall** (not planned; read after the test): a critic that is right values its "
        "actions at what they earn. Values as a share of their bound minus rewards as a share of "
        f"the largest, last {LAST} points, median run: {excess}. Over runs values follow what is "
        f"earned (Spearman) by {follows} (HER's are of goals): LSER's critic stands at "
        f"{number(runs().values(OURS)[0], digits=2)} of the bound in the middle run, fallen or "
        "not. With "
        f"{runs().one_reward(OURS):.2f} of its batches holding one single reward it hardly seemed "
        "to be told when a run slips from its plateau, which uniform's is; but contrast alone does "
        "not hold runs, and the newest transitions alone do (AA)."
    )


def in_short() -> str:
    """The primary test in a sentence for the first screen; nothing before it has been run."""
    if not known():
        return ""
    found = primary()
    return (
        f"**At the paper's length, as printed** (S of the plan, {found.seeds} seeds from 120 on, "
        f"{standing().sessions(OURS, REFERENCE):,} sessions) the primary test "
        f"{OUTCOMES[outcome()]}, {_means((OURS, REFERENCE))}, {interval(found.mean, sign=True)}, "
        f"{chance(found.p)}; LSER minus the others: {standing().told(OURS, secondary())}."
    )


def reading() -> str:
    """What S says in words; nothing before it has been run."""
    if not known():
        return ""
    apart = standing().welch(OURS, REFERENCE, KEY)
    found, better, area = primary(), runs().improvement(OURS, REFERENCE), sooner()
    both, every, scale = (OURS, REFERENCE), list(runs().runs), runs().scale
    assert scale.constant is not None
    over = listing([f"{name_of(a)} {number(runs().values(a)[0], digits=2)}" for a in every])
    soon = "; ".join(
        f"{name_of(arm)} {runs().reached(arm, 0.5)} and {runs().reached(arm, 0.9)}" for arm in both
    )
    return (
        "**Every memory at the paper's length, as printed** (S of the plan; VirtualTaobao, "
        f"90,000 sessions, {found.seeds} newer seeds of LSER and uniform, ten of the others "
        "(twenty of four of them by Z, below), "
        f"{runs().whole()}). The primary test {OUTCOMES[outcome()]}: final CTR {_means(both)}, "
        f"{interval(found.mean, sign=True)}, {chance(found.p)} (Welch "
        f"{interval(apart, sign=True)}; a run of LSER ends above one of uniform with "
        f"probability {interval(better)}). LSER minus each other, Holm over the {len(others())}: "
        f"{standing().told(OURS, secondary())}. {standing().cut()}Shares of the possible at the "
        "end of what is complete: "
        f"{levels({a: runs().share(a) for a in every if standing().whole(a)}, 2)}, the "
        f"{scale.constant.name} {scale.share(scale.constant.score):.2f}. Over training LSER minus "
        f"uniform is {interval(area.mean, sign=True)}; sessions to half and to .9 of the possible, "
        f"median (runs that get there): {soon}. The paper has 30,000 against 50,000. Runs that end "
        "more than a tenth of the possible below their best: "
        f"{listing(runs().fell(every))}. Critics' values of their own actions "
        f"over what rewards allow, median run: {over}. {believed()}"
    )


def _means(arms: tuple[str, ...]) -> str:
    return levels({arm: standing().mean(arm, KEY) for arm in arms})


def table() -> str:
    """Every arm where it stands."""
    lines = [
        "| arm | sessions | CTR [95 %] | share of the possible | reward per step | LSER minus it "
        "[95 %] | unpaired [95 %] | over training | sessions to half (runs) | to .9 (runs) | worst "
        "run | fell | seeds |",
        "|" + "---|" * 13,
    ]
    for arm in _ordered():
        ends = list(standing().scores(arm, KEY).values())
        pair = ["", ""]
        if arm != OURS:
            found = standing().gap(OURS, arm, KEY).mean
            pair = [
                interval(found, sign=True),
                interval(standing().welch(OURS, arm, KEY), sign=True),
            ]
        lines.append(
            row(
                *(name_of(arm), f"{standing().sessions(arm):,}", interval(mean_t(ends))),
                *(f"{runs().scale.share(float(np.mean(ends))):.2f}",),
                *(f"{standing().mean(arm, 'reward_per_step'):.2f}", *pair),
                *(f"{runs().area(arm):.3f}", runs().reached(arm, 0.5), runs().reached(arm, 0.9)),
                *(f"{min(ends):.3f}", str(sum(runs().fallen(arm).values())), str(len(ends))),
            )
        )
    return "\n".join(lines)


def critics() -> str:
    """What the critics of every arm believe; those of HER value goals."""
    lines = [
        "| arm | values over the bound | values minus rewards | values follow rewards | batches "
        "with one reward |",
        "|" + "---|" * 5,
    ]
    for arm in _ordered():
        told = (np.nan, np.nan) if arm == GOALS else runs().belief(arm)
        cells = (runs().values(arm)[0], *told, runs().one_reward(arm))
        lines.append(row(name_of(arm), *(number(x, digits=2) for x in cells)))
    return "\n".join(lines)


def _ordered() -> list[str]:
    """Every arm, the best first."""
    return sorted(runs().runs, key=lambda name: -standing().mean(name, KEY))


def block() -> str:
    """The words and the tables."""
    return f"{reading()}\n\n{table()}\n\n{critics()}" if known() else ""


if __name__ == "__main__":
    pack_or_print(sys.argv[1:], "length", FILE, block)
