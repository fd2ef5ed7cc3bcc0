"""The paper's length in one figure: LSER and uniform as printed (S) and with the cure (K)."""

from typing import Any

import cure
import length
import numpy as np
from committed import SEED
from scored import Scored

from lser.report.figures import Figure, render
from lser.report.panels import columns, rng_for
from lser.report.stats import bootstrap_curves
from lser.report.style import INK, look, name_of

NAME = "at-the-papers-length"
BANDIT = "linear bandit"
_ARMS = (  # the runs, the arm, how it is drawn and called
    (cure.runs, cure.OURS, "-", "LSER with the cure"),
    (cure.runs, cure.REFERENCE, "-", "uniform with the cure"),
    (length.runs, length.OURS, "--", "LSER as printed"),
    (length.runs, length.REFERENCE, "--", "uniform as printed"),
)


def draw(canvas: Any) -> None:
    """Interquartile means of twenty runs each with their bands, in shares of the possible."""
    axes = canvas.add_subplot()
    scale = length.runs().scale
    for found, arm, style, label in _ARMS:
        memory = arm.removesuffix(cure.CURED)
        sessions, shares = _shares(found(), arm)
        centre, low, high = bootstrap_curves(shares, rng_for(SEED, NAME, label))
        shown = look(memory, memory, 0)
        axes.fill_between(sessions, low, high, color=shown.colour, alpha=0.13, linewidth=0)
        axes.plot(sessions, centre, style, color=shown.colour, linewidth=1.8, label=label)
    assert scale.constant is not None
    bandit = next(policy.score for policy in scale.others if policy.name == BANDIT)
    marks = ((scale.random.score, "random actions", "bottom"), (bandit, BANDIT, "top"))
    for score, name, side in (*marks, (scale.constant.score, "best constant action", "bottom")):
        share = scale.share(score)
        axes.axhline(share, color=INK, linestyle=":", linewidth=0.9, alpha=0.6)
        axes.text(axes.get_xlim()[1], share, name, ha="right", va=side, fontsize=7.5, alpha=0.8)
    axes.set(xlabel="sessions", ylabel="share of the possible", ylim=(-0.03, 1.06))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.locator_params(axis="x", nbins=6)
    canvas.legend(loc="outside lower center", ncols=2, fontsize=8.5)


def _shares(found: Scored, arm: str) -> tuple[Any, Any]:
    """The points of the curves in sessions, and every run's shares there."""
    curves = [columns(run) for run in found.runs[arm].values()]
    points = min(len(sessions) for sessions, _ in curves)
    scores = np.array([scores[:points] for _, scores in curves])
    return curves[0][0][:points], np.vectorize(found.scale.share)(scores)


def picture() -> Figure:
    """The figure; an error where the runs no longer do what stands under it."""
    fallen = [found().fallen(arm).values() for found, arm, *_ in _ARMS]
    if sum(fallen[0]) or not 2 * sum(fallen[2]) > len(fallen[2]):
        raise ValueError("the records no longer say what stands under the figure")
    return render(
        NAME,
        draw,
        alt="CTR of LSER and uniform replay over 90,000 sessions of VirtualTaobao, as printed and "
        "with the cure",
        sentence="VirtualTaobao, DDPG: interquartile means of twenty runs with bootstrap bands. As "
        f"printed {name_of('lser')} leads early and most of its runs fall later (seeds 120 to "
        "139); with the cure it stays (seeds 100 to 119). 0 is random actions, 1 the best policy "
        "known.",
        size=(5.6, 3.9),
    )


def shown(folder: str) -> str:
    """The figure as a page shows it."""
    drawn = picture()
    return f"![{drawn.alt}]({folder}/{NAME}.svg)\n\n{drawn.sentence}"
