"""What D says in words, and the map: the blocks that `build.py` puts into the pages."""

from typing import Any

import numpy as np
import regions
from locality import (
    CONTROLS,
    DEPENDENCES,
    DISCOUNTS,
    LEVEL,
    LONG,
    PRIMARY,
    SHORT,
    SPARSITIES,
    Cell,
    Scores,
    arms_table,
    chart,
    gap,
    linear_bandit,
    long_table,
    map_table,
    secondary,
    shares,
    signed,
    slope,
    verdicts,
    world_of,
)

from lser.report.figures import Figure, render
from lser.report.stats import mean_t
from lser.report.style import INK, listing, look, name_of

NAME = "locality-map"
BANDIT = "linear bandit, 2,000"  # sessions
STYLES = ("-.", "--", ":")


def reading() -> str:
    """What D says in words; an error where the records no longer say so."""
    grows, bare = slope("reward-top"), slope("shuffled-code")
    first, last = (
        {c: gap(shares(cell, "lser", LONG), shares(cell, c, LONG)).mean for c in CONTROLS}
        for cell in (PRIMARY[0], PRIMARY[-1])
    )
    told = list(verdicts().values())
    kept = all(p <= LEVEL and found.mean.low > 0 for _, found, p in secondary())
    said = (grows.mean.low > 0, bare.mean.low < 0 < bare.mean.high, kept, set(told) == {"open"})
    if not all((*said, first["uniform"].high < 0, first["shuffled-code"].low > 0)):
        raise ValueError("the records of D no longer say what is written of them")
    cured = [
        gap(shares(cell, "lser with the cure", SHORT), shares(cell, f"{c} with the cure", SHORT))
        for c in ("uniform", "reward-top")
        for cell in PRIMARY[-1:]
    ]
    top = [cell for cell, gaps in chart().items() if gaps["reward-top"].mean.low > 0]
    return (
        "**What locality is worth on Bazaar** (D of the plan; batch 32, shares of the possible: 0 "
        "random actions, 1 the oracle). The primary test holds: with rare clicks (sparsity .005, "
        f"discount 0, 6,000 sessions, {grows.seeds} seeds in three worlds) LSER's lead over "
        "reward-top grows as the right page depends more on the user, by "
        f"{signed(grows.mean)} from state dependence 0 to 1. **Locality is not what makes it "
        "grow**: against shuffled-code, the same buckets filled with anybody's transitions, it "
        f"does not ({signed(bare.mean)}); one bucket for everybody is what fails. Where the right "
        "page depends on the user alone LSER ends above all three controls, after Holm: uniform "
        f"{signed(last['uniform'])}, reward-top {signed(last['reward-top'])}, shuffled-code "
        f"{signed(last['shuffled-code'])}. Where it does not depend on the user at all LSER ends "
        f"below uniform ({signed(first['uniform'])}) and still above shuffled-code "
        f"({signed(first['shuffled-code'])}), so even that lead need not be likeness of users. "
        f"On the map, at 2,000 sessions, locality pays in {told.count('pays')} of {len(told)} "
        f"cells and costs in {told.count('costs')} by the rule written before (above every control "
        "or below one, by Holm over the map): all are open. Against reward-top alone LSER's "
        f"interval is above zero in {len(top)} of {len(told)}. With the cure for everybody, at "
        "state dependence 1 and 2,000 sessions, LSER minus uniform is "
        f"{signed(cured[0].mean)}, minus reward-top {signed(cured[1].mean)} ({cured[0].seeds} "
        "seeds, not planned as a test). A linear bandit, which replays nothing, lies above all "
        f"four arms in {len(above_all())} of {len(told)} cells at 2,000 sessions (one seed in each "
        "world, not planned)."
    )


def above_all() -> list[Cell]:
    """Cells in which the linear bandit's mean share is above that of every arm."""
    found = []
    for cell in chart():
        bandit = _known_share(cell.sparsity, cell.dependence, BANDIT)
        arms = [shares(cell, arm, SHORT).values() for arm in ("lser", *CONTROLS)]
        if all(bandit > np.mean(list(values)) for values in arms):
            found.append(cell)
    return found


def draw(canvas: Any) -> None:
    """The map: shares of the possible over state dependence, four arms, five settings."""
    panels = [
        *((s, d, SHORT) for s in SPARSITIES for d in DISCOUNTS),
        (SPARSITIES[0], DISCOUNTS[0], LONG),
    ]
    axes = canvas.subplots(1, len(panels), sharey=True)
    for place, (plot, (sparsity, discount, sessions)) in enumerate(zip(axes, panels, strict=True)):
        for shift, arm in enumerate(("lser", *CONTROLS)):
            cells = [Cell(sparsity, dependence, discount) for dependence in DEPENDENCES]
            found = [mean_t(list(_drawn(cell, arm, sessions).values())) for cell in cells]
            middle = np.array([one.estimate for one in found])
            ends = np.array([[one.estimate - one.low, one.high - one.estimate] for one in found]).T
            shown = look(arm, arm, shift)
            plot.errorbar(
                np.array(DEPENDENCES) + 0.02 * (shift - 1.5),
                middle,
                ends,
                color=shown.colour,
                marker=shown.marker,
                ms=4,
                lw=1.2,
                label=name_of(arm),
            )
        for style, (name, values) in zip(STYLES, known(sparsity).items(), strict=True):
            plot.plot(DEPENDENCES, values, style, color=INK, lw=0.8, alpha=0.6, label=name)
        title = f"sparsity {sparsity:g}, discount {discount:g}"
        plot.set_title(f"{title}\n{sessions:,} sessions", fontsize=8)
        plot.set(xlabel="state dependence", xticks=DEPENDENCES, ylim=(0, 1))
        if not place:
            plot.set_ylabel("share of the possible")
    handles, labels = axes[0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside lower center", ncols=7, fontsize=8)


def _drawn(cell: Cell, arm: str, sessions: int) -> Scores:
    """Every run that stands in the picture: D's, and at 2,000 sessions U's with them."""
    return regions.together(cell, arm) if sessions == SHORT else shares(cell, arm, sessions)


def known(sparsity: float) -> dict[str, list[float]]:
    """Shares of the possible of policies without a memory, over state dependence."""
    return {
        name: [_known_share(sparsity, dependence, name) for dependence in DEPENDENCES]
        for name in ("shared taste for everybody", "knows demographics", BANDIT)
    }


def _known_share(sparsity: float, dependence: float, name: str) -> float:
    """The mean over the three worlds."""
    found = []
    for world in range(3):
        row = world_of(sparsity, dependence, world)
        score = {
            "shared taste for everybody": row["constant"],
            "knows demographics": row["informed"],
        }
        ctr = score.get(name) or linear_bandit(sparsity, dependence, world)
        found.append((ctr - row["random"]) / (row["oracle"] - row["random"]))
    return float(np.mean(found))


def picture() -> Figure:
    """The map as a figure."""
    counts = {len(_drawn(cell, "lser", SHORT)) for cell in chart()}
    sentence = f"Means over {listing(sorted(map(str, counts)))} seeds with 95 % intervals"
    return render(
        NAME,
        draw,
        alt="Shares of the possible on Bazaar over state dependence, for LSER and three controls",
        sentence=f"{sentence}; batch 32. Thin lines: the shared taste for everybody "
        "(dash-dotted), a policy that knows the world and the user's demographics (dashed), and a "
        "linear bandit after 2,000 sessions (dotted; one seed in each of three worlds).",
        size=(11.0, 3.4),
    )


def block() -> str:
    """The words and the map of D."""
    drawn = picture()
    return f"{reading()}\n\n![{drawn.alt}](figures/{NAME}.svg)\n\n{drawn.sentence}"


def tables() -> str:
    """Its tables."""
    return "\n\n".join(
        [
            "What was planned, cut and lost is in the [plan](plan.md#changes-to-this-plan).",
            "The primary cells (sparsity .005, discount 0, batch 32), 20 seeds:",
            long_table(),
            "The map at 2,000 sessions (mean of the points at 1,500 and 2,000), batch 32:",
            map_table(),
            "Bits, features and the cure in the primary cells at 2,000 sessions, seeds 100 to 109:",
            arms_table(),
        ]
    )
