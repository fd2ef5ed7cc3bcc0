"""The tables: final scores, further measures, times, maps, what was left out, and all in one."""

from collections.abc import Iterable, Mapping, Sequence

from lser.experiments.records import Record
from lser.experiments.studies import ScoreScale
from lser.report.findings import Estimate, Finding, Measures, Versus, find_out, map_cells
from lser.report.measures import PARTS, reached
from lser.report.naming import clean
from lser.report.panels import Arm, Study
from lser.report.sorting import studies
from lser.report.stats import Interval
from lser.report.style import count, interval, name_of, number
from lser.report.table import Table

SHORT = {
    "above": "clearly above",
    "below": "clearly below",
    "above?": "above, not after Holm",
    "below?": "below, not after Holm",
    "open": "not separated",
}
_CORRECTED = (
    " A difference that leaves out zero, and no longer does by Holm's method over its column, ends "
    "in a question mark."
)


def scores(found: Finding) -> Table:
    """The final scores of a panel: what each arm reached, and against the reference."""
    panel = found.panel
    against = name_of(panel.reference.name) if panel.reference else ""
    columns = ["arm", "seeds", "IQM", "mean"]
    caption = (
        f"{panel.title}: final {name_of(panel.metric)}. IQM with 95 % bootstrap intervals, mean "
        "with 95 % t-intervals"
    )
    if against:
        columns += [f"minus {against}", "unpaired", "p, Holm", f"beats {against}", "reading"]
        tests = sum(row.versus is not None for row in found.estimates)
        caption += (
            "; the paired difference (t) and the unpaired one (Welch); p of the paired t-test by "
            f"Holm's method over the {count(tests, 'comparison')} of this table; chance that a run "
            "beats one of the reference, with 95 % bootstrap intervals"
        )
    rows = [_score_row(found, row, compared=bool(against)) for row in found.estimates]
    if panel.scale is not None:
        caption += (
            "; below them what reference policies score there, bandits by short runs of their own"
        )
        rest = ("–",) * (len(columns) - 4)
        rows += [(one.name, "–", "–", number(one.score), *rest) for one in panel.scale.policies]
    return Table(f"{panel.name}-scores", f"{caption}.", tuple(columns), tuple(rows))


def _score_row(found: Finding, row: Estimate, *, compared: bool) -> tuple[str, ...]:
    first = (
        name_of(row.arm.name), str(len(row.arm.runs)), interval(row.iqm), interval(row.mean)
    )  # fmt: skip
    pair = row.versus
    if pair is None:
        return (*first, "–", "–", "–", "–", "reference") if compared else first
    return (
        *first,
        interval(pair.difference, sign=True),
        interval(pair.unpaired, sign=True),
        number(found.adjusted[pair.arm]),
        interval(pair.improvement),
        SHORT.get(found.reading(pair), "too few seeds"),
    )


def measures(found: Finding) -> Table:
    """What else counts: the whole training, how soon, how steadily, and the trained objective."""
    panel, scale = found.panel, found.panel.scale
    minus = [f"minus {name_of(panel.reference.name)}"] if panel.reference else []
    columns = ["arm", "over training", *minus, "worst run"]
    if scale is not None:
        columns[1:1] = ["share of possible"]
        columns += ["sessions to 50 %", "sessions to 90 %", "runs that fell"]
    columns += ["reward per step", *minus]
    rows = [
        _measure_row(found, row, measured)
        for row, measured in zip(found.estimates, found.measures, strict=True)
    ]
    return Table(
        f"{panel.name}-measures",
        f"{panel.title}: the average over training (95 % t-intervals, paired differences), the "
        f"worst run{_scale_words(scale)}, and the reward per step, which is what the agents are "
        f"trained on.{_CORRECTED if minus else ''}",
        tuple(columns),
        tuple(rows),
    )


def _measure_row(found: Finding, row: Estimate, measured: Measures) -> tuple[str, ...]:
    scale, cells = found.panel.scale, [name_of(row.arm.name)]
    if scale is not None:
        ends = Interval(*(scale.share(end) for end in row.mean))
        cells.append(interval(ends, digits=2))
    area, reward = measured.area_versus, measured.reward_versus
    against = found.panel.reference is not None
    cells.append(interval(row.area) if row.area else "–")
    cells += [_minus(area, found.adjusted_areas)] if against else []
    cells.append(number(measured.worst))
    if scale is not None:
        cells += [_sessions(row.arm, scale.score(share)) for share in (0.5, 0.9)]
        fell, runs = measured.fallen, sum(bool(run.curve) for run in row.arm.runs)
        cells.append(f"{round(fell.estimate * runs)} of {runs}" if fell else "–")
    cells.append(interval(measured.reward) if measured.reward else "–")
    cells += [_minus(reward, found.adjusted_rewards)] if against else []
    return tuple(cells)


def _minus(pair: Versus | None, adjusted: Mapping[str, float]) -> str:
    """A difference, with a question mark where Holm's correction undoes it."""
    if pair is None:
        return "–"
    shown = interval(pair.difference, sign=True)
    return f"{shown}?" if pair.reading(adjusted[pair.arm]).endswith("?") else shown


def _sessions(arm: Arm, threshold: float) -> str:
    """How many runs reached a score, and the median of the sessions it took."""
    if not arm.areas:
        return "–"
    share = reached(arm, threshold)
    hits = f"{round(share.share.estimate * share.runs)} of {share.runs}"
    median = share.median_sessions
    return f"{hits}, {'–' if median == float('inf') else f'{median:,.0f}'}"


def _scale_words(scale: ScoreScale | None) -> str:
    if scale is None:
        return ""
    between = [scale.constant] if scale.constant else []
    constant = "".join(f", {p.name} {number(p.score)}" for p in (*between, *scale.others))
    return (
        f", the place between {scale.random.name} ({number(scale.random.score)}: 0) and "
        f"{scale.best.name} ({number(scale.best.score)}: 1){constant}; how many runs ever reached "
        "50 and 90 % of that way with the Kaplan-Meier median of the sessions it took, and how "
        "many ended more than a tenth of it below their best evaluation"
    )


def times(found: Finding) -> Table:
    """Where the time of a run goes, averaged over seeds."""
    panel = found.panel
    columns = (
        *("memory", "seeds", "wall, s", "CPU, s", "replay, µs per update"),
        *(*(f"{part}, %" for part in PARTS), "rest, %"),
    )
    rows = []
    for arm in (arm for arm in panel.arms if arm.name in found.times):
        mean = found.times[arm.name]
        shares = [100 * mean[part] / mean["wall"] for part in PARTS]
        rows.append(
            (
                name_of(arm.name),
                str(len(arm.runs)),
                f"{mean['wall']:,.1f}",
                f"{mean['cpu']:,.1f}",
                f"{1e6 * mean['replay'] / mean['updates']:,.0f}" if mean["updates"] else "–",
                *(f"{share:.1f}" for share in (*shares, max(0.0, 100 - sum(shares)))),
            )
        )
    caption = (
        f"{panel.title}: seconds of one run (mean over seeds) and the shares of its wall time. "
        "Runs of a study share a machine, and sessions differ in length with the policy: compare "
        "the time per update and the shares, not seconds."
    )
    return Table(f"{panel.name}-times", caption, columns, tuple(rows))


def map_table(panels: Sequence[Finding], against: str) -> Table:
    """LSER minus another memory in every cell of a map."""
    rows = []
    for cell in map_cells(panels, "lser", against):
        arms = (cell.found.panel.arm(name) for name in ("lser", against))
        rows.append(
            (
                ", ".join(f"{value:g}" for value in cell.found.panel.coordinates),
                str(cell.pair.pairs),
                *(number(float(arm.values.mean())) for arm in arms if arm is not None),
                interval(cell.pair.difference, sign=True),
                number(cell.p),
                SHORT.get(cell.reading, "too few seeds"),
            )
        )
    panel, other_name = panels[0].panel, name_of(against)
    axes = ", ".join(axis.name.partition(" (")[0] for axis in panel.spec.panel_by)
    columns = (axes, "seeds", "LSER", other_name, "difference", "p, Holm", "reading")
    caption = (
        f"{name_of(panel.simulator)}: mean final scores of LSER and {other_name}, the paired "
        "difference with its 95 % interval, and p of its t-test by Holm's method over the "
        f"{count(len(rows), 'cell')}."
    )
    return Table(f"bazaar-map-{against}", caption, columns, tuple(rows))


def left_out(found: Sequence[Study]) -> Table:
    """The runs the report does not use, each with where it lies and the reason."""
    rows = tuple(
        (
            clean(study.name) or "runs",
            name_of(clean(run.simulator)) or "–",
            clean(run.label) or "–",
            str(run.seed) if run.experiment else "–",
            clean(run.where),
            reason,
        )
        for study in found
        for run, reason in study.left_out
    )
    columns = ("study", "simulator", "arm", "seed", "record", "why")
    return Table("left-out", "Runs that were left out, and why.", columns, rows)


def summary_table(records: Iterable[Record], *, seed: int = 0) -> Table:
    """One row per cell over all studies, for a terminal or a README."""
    rows = [
        (
            found.panel.study or "runs",
            found.panel.place,
            name_of(row.arm.name),
            str(len(row.arm.runs)),
            name_of(found.panel.metric),
            interval(row.iqm),
            interval(row.mean),
            interval(row.versus.difference, sign=True) if row.versus else "–",
        )
        for study in find_out(studies(records), seed=seed)
        for found in study.panels
        for row in found.estimates
    ]
    columns = ("study", "where", "arm", "seeds", "metric", "IQM", "mean", "minus reference")
    caption = "Final scores with 95 % intervals: IQM (bootstrap), mean and paired difference (t)."
    return Table("summary", caption, columns, tuple(rows))


def numbers_table(records: Iterable[Record], *, seed: int = 0) -> Table:
    """One row per cell over all studies, every estimate and interval end in a column of its own."""
    estimated = (
        *("iqm", "mean", "over_training", "difference", "improvement", "unpaired"),
        *("reward_per_step", "reward_difference"),
    )
    columns = (
        *("study", "simulator", "setting", "arm", "memory", "metric", "seeds", "reference"),
        *("pairs", "verdict", "p", "p_holm", "worst", "share_of_possible"),
        *(f"{name}{end}" for name in estimated for end in ("", "_low", "_high")),
    )
    rows = tuple(
        _numbers(found, row, measured)
        for study in find_out(studies(records), seed=seed)
        for found in study.panels
        for row, measured in zip(found.estimates, found.measures, strict=True)
    )
    return Table("numbers", "Every estimate of the report.", columns, rows)


def _numbers(found: Finding, row: Estimate, measured: Measures) -> tuple[str, ...]:
    panel, against, reward = found.panel, row.versus, measured.reward_versus
    paired = (against.difference, against.improvement, against.unpaired) if against else (None,) * 3
    reading = (
        (against.reference, str(against.pairs), found.reading(against))
        if against
        else ("", "", "reference" if panel.reference else "")
    )
    scale = panel.scale
    single = (
        against.p if against else None,
        found.adjusted[row.arm.name] if against else None,
        measured.worst,
        scale.share(row.mean.estimate) if scale else None,
    )
    rewards = (measured.reward, reward.difference if reward else None)
    values = (row.iqm, row.mean, row.area, *paired, *rewards)
    return (
        *(panel.study, panel.simulator, panel.setting, row.arm.name),
        *(row.arm.memory, panel.metric, str(len(row.arm.runs)), *reading),
        *(_plain(value) for value in single),
        *(cell for value in values for cell in _cells(value)),
    )


def _plain(value: float | None) -> str:
    return "" if value is None or value != value else f"{value:.6g}"


def _cells(value: Interval | None) -> list[str]:
    if value is None:
        return ["", "", ""]
    return [_plain(end) for end in value]
