"""The front page's answer: the sentence, a short table, one figure and a few points."""

from dataclasses import replace

import at_length
import confirmation as new_seeds
import cure
import interest
import length
import like_with_like
import regions
import regions_cured
import taobao_tuning
import tuned_alike
from committed import findings, panel_of
from delayed import gap as paired
from first import answer, evidence, recommender, signed
from locality import LONG, PRIMARY, gap, shares
from standing import Arms

from lser.report.overview import overview
from lser.report.style import listing, number
from lser.report.table import Table

SHORT = {  # rows of the front page, in its words; the others are further in
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
ASIDE = ("PER", "DER", "AER", "SER", "HER", "random-code")  # columns that are further in


def short(table: Table) -> Table:
    """The rows and columns of the front page."""
    kept = [at for at, name in enumerate(table.columns) if name not in ASIDE]
    found = {row[0].removesuffix(" †"): row for row in table.rows}
    return replace(
        table,
        columns=tuple(table.columns[at] for at in kept),
        rows=tuple((SHORT[title], *(found[title][at] for at in kept[1:])) for title in SHORT),
        marks=(),
    )


def headline() -> str:
    """The front page: the sentence, a short table, the picture, the numbers in a few points."""
    table = overview(findings())
    assert table is not None
    evidence()  # or an error: the points below say the same
    few = short(table.table)
    points = (_printed(), _tuned(), _cured(), _local(), recommender())
    return "\n".join(
        [
            f"**{answer()}**",
            "",
            few.markdown(),
            few.caption.replace("of this table", "of the whole table"),
            "",
            at_length.shown("results/figures"),
            "",
            *(f"- {point}" for point in points if point),
            "",
            "[Every memory and setting, the paper's claims one by one, how the results came about "
            "and the commands behind them](results/README.md).",
        ]
    )


def _printed() -> str:
    """C and S in a sentence."""
    early, late = new_seeds.runs(new_seeds.NOISES[0]), length.runs()
    gaps = [paired(found.of("lser"), found.of("uniform")).mean for found in (early, late)]
    if length.outcome() == "above":
        raise ValueError("the records no longer say that LSER as printed does not last")
    return (
        f"**As printed it does not last.** At 15,000 sessions LSER has a CTR of "
        f"{early.mean('lser'):.3f}, uniform replay {early.mean('uniform'):.3f}, "
        f"{signed(gaps[0])}; at 90,000 {late.mean('lser'):.3f} and {late.mean('uniform'):.3f}, "
        f"{signed(gaps[1])} (twenty seeds each, planned before they ran). Runs that end more than "
        f"a tenth of the possible below their best: {listing(late.fell(('lser', 'uniform')))}. "
        "LSER's critics do not notice (read after the test): they value their actions at "
        f"{number(late.values('lser')[0], digits=2)} of what rewards allow, and over runs that "
        "follows what is earned by a rank correlation of "
        f"{number(late.belief('lser').follows, digits=2)}, uniform's by "
        f"{number(late.belief('uniform').follows, digits=2)}; "
        f"{late.one_reward('lser'):.2f} of LSER's batches hold one single reward."
    )


def _tuned() -> str:
    """I and W in a point of their own; nothing before they have run."""
    return f"{taobao_tuning.in_short()} {tuned_alike.in_short()}".strip()


def _cured() -> str:
    """K and T in a sentence."""
    ends = [cure.runs().mean(arm) for arm in (cure.OURS, cure.TOP, cure.REFERENCE)]
    found = paired(cure.runs().of(cure.OURS), cure.runs().of(cure.REFERENCE)).mean
    return (
        "**With the cure it does** (`lser-steady`: values within what rewards allow, the newest "
        "transitions in every batch, a coin for every item; each memory gets what it can have of "
        f"it). At 90,000 sessions LSER {ends[0]:.3f}, reward order without a hash {ends[1]:.3f}, "
        f"uniform {ends[2]:.3f}; LSER minus uniform {signed(found)}; "
        f"{like_with_like.sides()}. The cure was made for "
        f"LSER's falls; without and with it (other seeds, no test): {like_with_like.both_ways()}."
    )


def _local() -> str:
    """What locality itself adds."""
    held = panel_of("cure", "virtual-taobao").against(cure.OURS, cure.TOP)
    assert held is not None
    users = gap(shares(PRIMARY[-1], "lser", LONG), shares(PRIMARY[-1], "shuffled-code", LONG)).mean
    drift = Arms(interest.runs()).gap(interest.OURS, interest.TOP, "reward_per_step").mean
    if drift.low <= 0:
        raise ValueError("the records no longer say that one order for everybody fails")
    return (
        f"**Buckets can be worth much, {_worth()}**: LSER minus the same order of reward in "
        f"one bucket is {signed(held.difference)} on VirtualTaobao with the cure and "
        f"{signed(drift)} of reward per step on interest evolution paid by quality, where one "
        "order for everybody fails; LSER minus the same buckets filled at random, on Bazaar with "
        f"rare clicks, {signed(users)} of the possible{_by_discount()}."
    )


def _worth() -> str:
    return "locality something with a long discount" if regions.holds() else "locality little"


def _by_discount() -> str:
    """U in a sentence; nothing before it has run."""
    if not regions.there():
        return ""
    far, near = regions.pays()[0][regions.MATCHED].mean, regions.does_not_pay()[0].mean
    ours = [
        f"{regions.level(cells, regions.OURS):.2f}"
        for cells in (regions.FROZEN, regions.SHORT_SIGHTED)
    ]
    return (
        f", with the paper's discount of .99 {signed(far)} (new seeds, planned before they ran) "
        f"and with 0 and clicks that are not rare {signed(near)}; but the discount is worth more "
        f"than the memory (LSER has {ours[0]} and {ours[1]} of the possible with the two, a "
        f"linear bandit {regions.bandit(regions.FROZEN):.2f}){_with_the_cure()}"
    )


def _with_the_cure() -> str:
    """V in a sentence; nothing before it has run."""
    if not regions_cured.there():
        return ""
    near, far = regions_cured.by_discount()
    gaps = [
        f"{signed(far[c][0].mean)} with .99 and {signed(near[c][0].mean)} with 0"
        for c in regions_cured.CONTROLS
    ]
    outcome = regions_cured.said(regions_cured.primary()[1])
    return (
        f", and with the cure for all, on newer seeds, locality {outcome}: LSER minus uniform "
        f"{gaps[0]}, minus the buckets filled at random {gaps[1]}"
    )
