"""Draws theory.svg beside this file: Lemma 1's bounds, recall, occupied codes."""

import math
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lser import theory
from lser.replay.index.encoders import E2LSH, SimHash

mpl.use("Agg")
mpl.rcParams |= {"svg.hashsalt": "lser", "font.size": 9, "axes.spines.top": False}
mpl.rcParams |= {"axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.3}


def draw_lemma(axes: Axes) -> None:
    """The collision probability at c ± e between the three pairs of bounds (Gauss, w = 4)."""
    c, w = 1.0, 4.0
    errors = np.linspace(0.002, 0.3, 120)
    axes.plot(errors, [theory.e2lsh_collision(c + e, w) for e in errors], "k", label="true")
    axes.plot(errors, [theory.e2lsh_collision(c - e, w) for e in errors], "k")
    styles = (("printed", "C3", "--"), ("corrected", "C0", "-."), ("sharp", "C2", ":"))
    for form, colour, line in styles:
        bounds = [theory.lemma_1(c, w, e, form=form) for e in errors]
        axes.plot(errors, [b.lower for b in bounds], color=colour, ls=line, label=form)
        axes.plot(errors, [b.upper for b in bounds], color=colour, ls=line)
    printed = [theory.lemma_1(c, w, e, form="printed").lower for e in errors]
    true = [theory.e2lsh_collision(c + e, w) for e in errors]
    axes.fill_between(errors, true, printed, where=np.greater(printed, true), color="C3", alpha=0.2)
    marks = np.linspace(0.025, 0.3, 6)
    axes.plot(marks, [simulated(c + e, w) for e in marks], "ko", ms=4, label="the encoder")
    axes.plot(marks, [simulated(c - e, w) for e in marks], "ko", ms=4)
    axes.set(xlabel="error e of the distance", ylabel="collision probability", ylim=(0.5, 1.0))
    axes.set_title("Lemma 1 at c = 1, w = 4\nshaded: the printed bound is false")
    axes.legend(loc="lower left", fontsize=8)


def simulated(distance: float, width: float, draws: int = 40_000) -> float:
    """How often the encoder's cells of two points at `distance` agree."""
    step = np.array([[0.0] * 4, [distance, 0.0, 0.0, 0.0]], np.float32)
    hits = [
        np.mean(cells[0] == cells[1])
        for seed in range(draws // 32)
        for cells in (E2LSH(4, functions=32, width=width, seed=seed).cells(step),)
    ]
    return float(np.mean(hits))


def draw_recall(axes: Axes) -> None:
    """Recall of one and of ten tables over the angle."""
    degrees = np.linspace(0, 90, 181)
    for colour, bits in zip(("C0", "C1", "C2"), (4, 10, 20), strict=True):
        one = [theory.simhash_collision(math.radians(d)) for d in degrees]
        axes.plot(degrees, [theory.recall(p, bits) for p in one], colour, label=f"{bits} bits")
        axes.plot(degrees, [theory.recall(p, bits, 10) for p in one], colour, ls="--")
    axes.set(xlabel="angle to the query (degrees)", ylabel="recall", ylim=(0, 1))
    axes.set_title("Found in the query's bucket\nsolid: one table (LSER), dashed: ten")
    axes.legend()


def draw_occupancy(axes: Axes) -> None:
    """Occupied codes expected, and those of the encoder on uniform directions."""
    stored = np.unique(np.geomspace(1, 30_000, 40).astype(int))
    cases = ((10, 91), (10, 5), (16, 20), (16, 4))
    for colour, (bits, dim) in zip(("C0", "C1", "C2", "C3"), cases, strict=True):
        expected = [theory.occupancy(int(n), bits, dim).occupied for n in stored]
        axes.loglog(stored, expected, colour, label=f"{bits} bits, {dim} dimensions")
        x = np.random.default_rng(1).standard_normal((30_000, dim)).astype(np.float32)
        codes = SimHash(dim, bits=bits, seed=0).encode(x)
        marks = stored[::4]
        axes.loglog(marks, [np.unique(codes[:n]).size for n in marks], colour, marker="o", ls="")
    axes.set(xlabel="observations stored", ylabel="occupied codes")
    axes.set_title("Occupied codes\nlines: expected, dots: the encoder")
    axes.legend()


def main() -> None:
    """Write the figure."""
    figure = Figure(figsize=(12, 3.8), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    draw_lemma(left)
    draw_recall(middle)
    draw_occupancy(right)
    figure.savefig(Path(__file__).with_suffix(".svg"), metadata={"Date": None})


if __name__ == "__main__":
    main()
