"""What is drawn: curves, runs, trends, maps and running times."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lser.report.figures import Draw
from lser.report.findings import Cell, Finding, map_cells
from lser.report.measures import OWN, PARTS, over_the_bound
from lser.report.naming import clean
from lser.report.panels import Arm, Panel, on_one_grid, rng_for
from lser.report.stats import Float64, Interval, bootstrap_curves
from lser.report.style import INK, Look, look, name_of, number

_PART_COLOURS = {
    "env": "#0072b2", "replay": "#d55e00", "learn": "#009e73", "evaluate": "#cc79a7",
    "rest": "#9a9a9a",
}  # fmt: skip
FAR = 3.0  # over what rewards allow, from where on values are drawn by their logarithm
LEGEND, HANDLE = 76, 6  # letters that a legend has room for, and that a line of it takes


def curves(found: Finding) -> Draw:
    """Learning curves: interquartile mean, its band, and every run faintly behind."""
    panel = found.panel

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        crowded = len(panel.arms) > 4
        faint = 0.12 if crowded else 0.3
        first = {"lser", panel.reference.name if panel.reference else ""}
        for position, (arm, shown) in enumerate(_looks(panel)):
            sessions, runs = arm.curves
            if not sessions.size:
                continue
            for run in runs:
                axes.plot(sessions, run, color=shown.colour, alpha=faint, linewidth=0.6)
            rng = rng_for(found.seed, "curve", panel.name, arm.name)
            centre, low, high = bootstrap_curves(runs, rng)
            band = 0.04 if crowded and arm.name not in first else 0.16
            axes.fill_between(sessions, low, high, color=shown.colour, alpha=band, linewidth=0)
            every = max(1, len(sessions) // 6)
            axes.plot(
                sessions, centre, color=shown.colour, linewidth=shown.width, marker=shown.marker,
                markersize=4.5, markevery=(position % every, every), label=_shown(arm.name),
            )  # fmt: skip
        _marks(axes.axhline, panel)
        _shares(axes, panel)
        axes.set_ylabel(_shown(panel.metric))
        _over_sessions(figure, axes, [_shown(arm.name) for arm in panel.arms])

    return draw


def values(found: Finding) -> Draw:
    """What critics think of their own actions over what rewards allow: the median run, and all."""
    panel = found.panel

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        names, ends = [], [0.0, 1.0]
        for arm, shown in _looks(panel):
            told = [over_the_bound(run, OWN) for run in arm.runs]
            runs = [tuple(np.array(points).T) for points in told if points]
            if not runs:
                continue
            names.append(_shown(arm.name))
            for sessions, shares in runs:
                axes.plot(sessions, shares, color=shown.colour, alpha=0.12, linewidth=0.6)
                known = shares[np.isfinite(shares)]  # those of a critic that broke are not drawn
                ends = [min([ends[0], *known]), max([ends[1], *known])]
            at, shares = on_one_grid(runs)
            middle = np.median(shares, axis=0)
            axes.plot(at, middle, color=shown.colour, linewidth=shown.width, label=names[-1])
        axes.axhline(1.0, color=INK, linestyle="--", linewidth=0.9, alpha=0.6)
        if ends[1] > FAR:
            axes.set_yscale("symlog", linthresh=1)
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
            axes.set_ylim(ends[0], 1.5 * ends[1])
        axes.set_ylabel("value over what rewards allow")
        _over_sessions(figure, axes, names)

    return draw


def dots(found: Finding) -> Draw:
    """Every run's final score as one dot, and below them the mean with its t-interval."""
    panel = found.panel

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        everything = np.concatenate([arm.values for arm in panel.arms])
        near = (float(np.ptp(everything)) or 1.0) / 45
        rows = zip(found.estimates, _looks(panel), strict=True)
        for row, (estimate, (arm, shown)) in enumerate(rows):
            values = np.sort(arm.values)
            axes.plot(
                values, row - 0.12 + _stack(values, near), linestyle="none", marker=shown.marker,
                color=shown.colour, alpha=0.7, markersize=5, markeredgewidth=0,
            )  # fmt: skip
            _bar(axes, row + 0.3, estimate.mean, Look(INK, "|", 1.2), width=1.4, filled=True)
        _rows(axes, [_shown(arm.name) for arm in panel.arms])
        _marks(axes.axvline, panel)
        _shares(axes, panel, across=True)
        axes.set_xlabel(f"final {_shown(panel.metric)} of each run; bars: mean, 95 % t-interval")

    return draw


def improvement(rows: Sequence[tuple[str, Interval]], reference: str) -> Draw:
    """The chance that a run of each memory beats one of the reference, over all settings."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        for row, (name, found) in enumerate(rows):
            _bar(axes, row, found, look(name, name, row), width=3.0, filled=True)
        axes.axvline(0.5, color=INK, linewidth=1, linestyle="--")
        _rows(axes, [_shown(name) for name, _ in rows])
        axes.set_xlim(-0.02, 1.02)
        axes.set_xlabel(f"probability of improvement over {_shown(reference)}")

    return draw


def trend(found: Finding) -> Draw:
    """The final score along the setting that the study's arms are named by, such as bits."""
    axis = found.panel.spec.arm_by[0]

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        steps = sorted(
            (
                (float(value), row)
                for row in found.estimates
                if isinstance(value := axis.value(row.arm.runs[0].experiment), int | float)
            ),
            key=lambda step: step[0],
        )
        at = np.array([value for value, _ in steps])
        means = np.array([row.mean for _, row in steps]).reshape(-1, 3)  # (steps, 3)
        colour = look("lser", "lser", 0).colour
        for value, row in steps:
            scores = row.arm.values
            axes.plot([value] * len(scores), scores, "o", color=colour, alpha=0.3, markersize=4,
                      markeredgewidth=0)  # fmt: skip
        axes.errorbar(
            at, means[:, 0], yerr=np.abs(means[:, 1:] - means[:, :1]).T, color=colour, marker="o",
            linewidth=1.8, elinewidth=1.2, capsize=3,
        )  # fmt: skip
        _marks(axes.axhline, found.panel)
        _shares(axes, found.panel)
        axes.set_xticks(at)
        axes.set_xlabel(axis.name or axis.path)
        axes.set_ylabel(f"final {_shown(found.panel.metric)}")

    return draw


def heat_map(panels: Sequence[Finding], against: str) -> Draw:
    """LSER minus another memory over the two axes of a map, with intervals."""
    down, across = panels[0].panel.spec.panel_by
    cells = {one.found.panel.coordinates: one for one in map_cells(panels, "lser", against)}
    rows, columns = (sorted({key[axis] for key in cells}) for axis in (0, 1))
    values = np.full((len(rows), len(columns)), np.nan)
    for (row, column), one in cells.items():
        values[rows.index(row), columns.index(column)] = one.pair.difference.estimate

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        limit = 1.2 * max(float(np.nanmax(np.abs(values))), 1e-9)
        image = axes.pcolormesh(values, cmap="PuOr_r", vmin=-limit, vmax=limit)
        for (row, column), one in cells.items():
            place = (columns.index(column) + 0.5, rows.index(row) + 0.5)
            _cell_text(axes, place, one, limit, columns=len(columns))
        axes.set_xticks(np.arange(len(columns)) + 0.5, [f"{value:g}" for value in columns])
        axes.set_yticks(np.arange(len(rows)) + 0.5, [f"{value:g}" for value in rows])
        axes.set_xlabel(across.name)
        axes.set_ylabel(down.name)
        axes.grid(visible=False)
        bar = figure.colorbar(image, ax=axes, shrink=0.9)
        bar.set_label(f"LSER minus {_shown(against)}")
        bar.outline.set_visible(False)

    return draw


def running_time(found: Finding) -> Draw:
    """Where the wall time of a run goes, memory by memory."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        names, means = list(found.times), list(found.times.values())
        start = np.zeros(len(names))
        for part in (*PARTS, "rest"):
            length = np.array([_seconds(mean, part) for mean in means])
            axes.barh(range(len(names)), length, left=start, height=0.66,
                      color=_PART_COLOURS[part], label=part)  # fmt: skip
            start += length
        _rows(axes, [_shown(name) for name in names])
        axes.set_xlabel("seconds of wall time per run (mean over seeds)")
        figure.legend(loc="outside lower center", ncols=5, fontsize=8.5, columnspacing=1.0)

    return draw


def _seconds(mean: dict[str, float], part: str) -> float:
    if part != "rest":
        return mean[part]
    return max(0.0, mean["wall"] - sum(mean[p] for p in PARTS))


def _over_sessions(figure: Any, axes: Any, names: Sequence[str]) -> None:
    """What figures along a curve have in common: the sessions below, and whose line is whose."""
    axes.set_xlabel("sessions")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.locator_params(axis="x", nbins=6)
    figure.legend(loc="outside lower center", ncols=legend_columns(names), fontsize=8.5)


def _marks(line: Any, panel: Panel) -> None:
    """Lines at what random actions, simple learners, the best constant and the best known score."""
    scale = panel.scale
    if scale is None:
        return
    known = ((scale.random, ":"), (scale.constant, "-."), (scale.best, "--"))
    for policy, style in known:
        if policy is not None:
            line(policy.score, color=INK, linestyle=style, linewidth=0.9, alpha=0.6)
    for policy in scale.others:
        line(policy.score, color=INK, linestyle="-", linewidth=0.6, alpha=0.35)


def _shares(axes: Any, panel: Panel, *, across: bool = False) -> None:
    """A second axis: 0 is random actions, 1 the best policy known."""
    scale = panel.scale
    if scale is None or scale.best.score == scale.random.score:
        return
    add, side = (axes.secondary_xaxis, "top") if across else (axes.secondary_yaxis, "right")
    share, score = (np.vectorize(of, otypes=[np.float64]) for of in (scale.share, scale.score))
    second = add(side, functions=(share, score))
    (second.set_xlabel if across else second.set_ylabel)("share of the possible", fontsize=8)
    second.tick_params(labelsize=7.5, length=2)
    second.spines[side].set_visible(False)


def _shown(name: str) -> str:
    """A name as a figure has room for it."""
    return clean(name_of(name), 36)


def _looks(panel: Panel) -> list[tuple[Arm, Look]]:
    memories = [arm.memory for arm in panel.arms]
    # arms that only share a memory, such as bandits beside uniform replay, are told apart
    known = [memory if memories.count(memory) == 1 else "" for memory in memories]
    return [(arm, look(arm.name, known[i], i)) for i, arm in enumerate(panel.arms)]


def legend_columns(names: Sequence[str]) -> int:
    """As many as fit beside each other under a figure; three at most where there are many."""
    longest = max(map(len, names), default=0)
    most = 3 if len(names) > 4 else len(names)
    return max(1, min(most, LEGEND // (longest + HANDLE)))


def _rows(axes: Any, names: list[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.45, -0.55)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)


def _bar(
    axes: Any, row: float, found: Interval, shown: Look, *, width: float, filled: bool
) -> None:
    axes.plot([found.low, found.high], [row, row], color=shown.colour, linewidth=width,
              solid_capstyle="butt")  # fmt: skip
    axes.plot([found.estimate], [row], marker=shown.marker, color=shown.colour, markersize=6,
              markerfacecolor=shown.colour if filled else "none")  # fmt: skip


def _stack(values: Float64, near: float) -> Float64:
    """Offsets for sorted values: those within ``near`` of each other climb in small steps."""
    heights = np.zeros(len(values))
    for i in range(1, len(values)):
        if values[i] - values[i - 1] < near:
            heights[i] = (heights[i - 1] + 0.16) % 0.48
    return np.asarray(heights - heights.max() / 2)


def _cell_text(
    axes: Any, place: tuple[float, float], cell: Cell, limit: float, *, columns: int
) -> None:
    found = cell.pair.difference
    # The cell's own colour decides: white on the dark ends of the scale, black on its middle.
    colour = "#ffffff" if abs(found.estimate) > 0.7 * limit else "#000000"
    weight = "bold" if cell.reading in ("above", "below") else "normal"
    x, y = place
    # About 27 points of text size fit side by side; from four columns on the ends take two lines.
    gap, room = (", ", 27) if columns < 4 else (",\n", 50)
    ends = f"[{number(found.low, sign=True)}{gap}{number(found.high, sign=True)}]"
    axes.text(x, y + 0.02, number(found.estimate, sign=True), ha="center", va="bottom",
              color=colour, fontsize=min(11, 40 / columns), fontweight=weight)  # fmt: skip
    axes.text(x, y - 0.04, ends, ha="center", va="top", color=colour,
              fontsize=min(7.5, room / columns))  # fmt: skip
