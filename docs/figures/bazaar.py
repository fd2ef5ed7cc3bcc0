"""Draws bazaar.svg beside this file and writes the score table into docs/simulators/bazaar.md."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lser.simulators.bazaar import Params
from lser.simulators.bazaar.oracle import (
    Policy,
    Score,
    Sighted,
    constant,
    informed,
    long_term_score,
    myopic_score,
    play,
    scoring,
    uniformly_random,
)
from lser.simulators.bazaar.simulator import Bazaar

mpl.use("Agg")
mpl.rcParams |= {"svg.hashsalt": "lser", "font.size": 9, "axes.spines.top": False}
mpl.rcParams |= {"axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.3}

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "simulators" / "bazaar.md"
BEGIN, END = "<!-- scores: docs/figures/bazaar.py -->", "<!-- end of scores -->"
STYLE = {
    "oracle": ("C0", "-", "myopic oracle (sees interest)"),
    "informed": ("C2", "--", "informed (knows the world, sees demographics)"),
    "constant": ("C1", "-.", "one action for everybody"),
    "random": ("C7", ":", "random actions"),
}


def policies(bazaar: Bazaar) -> dict[str, Policy]:
    """The policies compared in the pictures."""
    shared = scoring(bazaar.world.shared[None], 0.0)[0]
    return {
        "oracle": Sighted(bazaar),
        "informed": informed(bazaar),
        "constant": constant(bazaar, shared),
        "random": uniformly_random(bazaar, seed=1),
    }


def sweep(axes: Axes, name: str, values: list[float], *, against: bool = False) -> None:
    """CTR of each policy over one dial."""
    curves: dict[str, list[float]] = {key: [] for key in STYLE}
    for value in values:
        bazaar = Bazaar(Params(**{name: value}))  # type: ignore[arg-type]
        for key, policy in policies(bazaar).items():
            curves[key].append(play(bazaar, policy, sessions=2_000).ctr)
    for key, (colour, line, label) in STYLE.items():
        axes.plot(values, curves[key], color=colour, ls=line, marker=".", label=label)
    if against:
        axes.plot(values, values, color="k", lw=0.7, label="CTR = sparsity")
    axes.set(xlabel=name, ylabel="CTR", ylim=(0, None))


def draw_drift(axes: Axes) -> None:
    """How like its beginning a personal taste still is."""
    pages = np.arange(16)
    for drift in (0.0, 0.05, 0.1, 0.2, 0.3):
        axes.plot(pages, np.cos(drift * np.pi / 2) ** pages, label=f"drift {drift:g}")
    axes.set(xlabel="page", ylabel="E cos(taste now, taste at arrival)", ylim=(0, 1.02))
    axes.legend(fontsize=7)


def draw_leaving(axes: Axes) -> None:
    """Chance to leave over satisfaction."""
    satisfaction = np.linspace(0, 1, 101).astype(np.float32)
    for patience in (0.0, 1.0, 3.0, 5.0):
        world = Bazaar(Params(patience=patience)).world
        axes.plot(satisfaction, world.leave_chance(satisfaction), label=f"patience {patience:g}")
    axes.set(xlabel="satisfaction", ylabel="chance to leave after a page", ylim=(0, None))
    axes.legend(loc="upper right", fontsize=7)


def draw_patience(axes: Axes) -> None:
    """What looking ahead brings."""
    values = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    myopic = [myopic_score(Params(patience=value)) for value in values]
    far = [long_term_score(Params(patience=value)).score for value in values]
    for scores, colour, label in ((far, "C3", "long-term"), (myopic, "C0", "myopic")):
        errors = [2 * score.clicks_error for score in scores]
        clicks = [score.clicks for score in scores]
        axes.errorbar(values, clicks, errors, color=colour, marker=".", label=f"{label} oracle")
    axes.set(xlabel="patience", ylabel="clicks per session", ylim=(0, None))
    axes.legend(fontsize=7)


def draw() -> None:
    """The six pictures of the page."""
    figure = Figure(figsize=(11, 6.4), layout="constrained")
    axes = figure.subplots(2, 3)
    sweep(axes[0, 0], "sparsity", [0.005, 0.01, 0.02, 0.05, 0.1, 0.2], against=True)
    axes[0, 0].set(xscale="log", yscale="log", ylim=(0.003, 1), title="sparsity")
    sweep(axes[0, 1], "state_dependence", [0.0, 0.25, 0.5, 0.75, 1.0])
    axes[0, 1].set_title("state_dependence")
    sweep(axes[0, 2], "items", [100, 300, 1_000, 3_000, 10_000])
    axes[0, 2].set(xscale="log", title="items")
    draw_drift(axes[1, 0])
    axes[1, 0].set_title("drift: the taste turns")
    draw_leaving(axes[1, 1])
    axes[1, 1].set_title("patience: clicks keep users")
    draw_patience(axes[1, 2])
    axes[1, 2].set_title("patience: what looking ahead is worth")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=8)
    figure.savefig(HERE / "bazaar.svg", metadata={"Date": None})


def row(name: str, params: Params) -> str:
    """One line of the table."""
    bazaar = Bazaar(params)
    random = play(bazaar, uniformly_random(bazaar, seed=1))
    told = play(bazaar, informed(bazaar))
    fixed = play(bazaar, policies(bazaar)["constant"])
    myopic, far = myopic_score(params), long_term_score(params)

    def session(score: Score) -> str:
        return f"{score.clicks:.1f} in {score.pages:.1f}"

    cells = [
        name,
        f"{random.ctr:.4f} ± {random.ctr_error:.4f}",
        f"{fixed.ctr:.3f}",
        f"{told.ctr:.3f}",
        f"{myopic.ctr:.3f}",
        f"{far.score.ctr:.3f}",
        session(random),
        session(myopic),
        session(far.score),
        f"{far.quality_weight:g}",
    ]
    return "| " + " | ".join(cells) + " |"


def table() -> str:
    """Scores over the dials, one dial moved at a time."""
    dials: list[tuple[str, list[float]]] = [
        ("sparsity", [0.005, 0.01, 0.05, 0.1, 0.2]),
        ("state_dependence", [0.0, 0.25, 0.75, 1.0]),
        ("drift", [0.0, 0.1, 0.3]),
        ("patience", [0.0, 1.0, 5.0]),
        ("items", [100, 10_000]),
        ("features", [16, 28]),
    ]
    head = [
        "| dials | random CTR | constant | informed | myopic oracle | long-term oracle "
        "| random: clicks in pages | myopic | long-term | its weight on quality |",
        "|---|---|---|---|---|---|---|---|---|---|",
        row("default", Params()),
    ]
    rows = [
        row(f"{name} {value:g}", Params(**{name: value}))  # type: ignore[arg-type]
        for name, values in dials
        for value in values
    ]
    return "\n".join(head + rows)


def main() -> None:
    """Draw the picture and refresh the table."""
    draw()
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n{table()}\n{END}{after}")


if __name__ == "__main__":
    main()
