"""Tables as CSV, Markdown, text and HTML, and what they hold."""

import csv
import io
import math
from dataclasses import replace

import numpy as np
import pytest
import synthetic

from lser.experiments.records import Record
from lser.report import Table, numbers_table, summary_table, tables
from lser.report.closing import panel_text
from lser.report.findings import Finding, find_out, map_cells
from lser.report.learning import while_learning
from lser.report.parts import panel_figures
from lser.report.sorting import studies
from lser.report.stats import Interval
from lser.report.style import interval, number

TABLE = Table("t", "A <caption>", ("arm", "score"), (("a|b", "−0.5"), ("<c>", "1, 2")))


def first(runs: list[Record]) -> Finding:
    return find_out(studies(runs))[0].panels[0]


def test_a_table_becomes_csv_with_plain_signs() -> None:
    rows = list(csv.reader(io.StringIO(TABLE.csv())))
    assert rows == [["arm", "score"], ["a|b", "-0.5"], ["<c>", "1, 2"]]


def test_a_table_becomes_markdown_with_bars_escaped() -> None:
    assert TABLE.markdown().splitlines() == [
        "| arm | score |", "| --- | --- |", "| a\\|b | −0.5 |", "| &lt;c> | 1, 2 |",
    ]  # fmt: skip


def test_a_table_becomes_aligned_text() -> None:
    assert str(TABLE) == TABLE.text() == "arm  score\na|b  −0.5\n<c>  1, 2\n"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.12345, "0.123"), (-0.5, "−0.500"), (12.345, "12.35"), (1234.5, "1,234"), (np.nan, "–")],
)
def test_numbers_have_the_precision_they_deserve(value: float, text: str) -> None:
    assert number(value) == text


def test_an_interval_without_ends_shows_the_estimate_alone() -> None:
    assert interval(Interval(0.5, float("nan"), float("nan"))) == "0.500"
    assert interval(Interval(0.5, 0.25, 0.75), sign=True) == "+0.500 [+0.250, +0.750]"


def test_the_summary_has_a_row_for_every_cell() -> None:
    found = summary_table(synthetic.demo())
    assert [row[:4] for row in found.rows] == [
        ("demo", "Bazaar", "LSER", "4"), ("demo", "Bazaar", "uniform", "4"),
    ]  # fmt: skip
    assert found.rows[0][-1].startswith("+")
    assert found.rows[1][-1] == "–"


def test_the_numbers_can_be_read_back() -> None:
    rows = list(csv.DictReader(io.StringIO(numbers_table(synthetic.demo()).csv())))
    lser, uniform = rows
    assert (lser["arm"], lser["reference"], lser["pairs"]) == ("lser", "uniform", "4")
    assert float(lser["mean"]) - float(uniform["mean"]) == pytest.approx(
        float(lser["difference"]), abs=1e-5
    )
    assert (
        float(lser["difference_low"]) < float(lser["difference"]) < float(lser["difference_high"])
    )
    assert (uniform["verdict"], uniform["difference"]) == ("reference", "")


def test_runs_that_never_reach_a_threshold_count_as_longer() -> None:
    runs = [synthetic.record("s", "uniform", seed, level=0.6, spread=0.0) for seed in range(3)]
    table = tables.measures(first(runs))
    row = dict(zip(table.columns, table.rows[0], strict=False))
    assert row["sessions to 50 %"].startswith("3 of 3, ")
    assert row["sessions to 90 %"] == "0 of 3, –"


def test_measures_have_the_worst_run_the_falls_and_the_trained_objective() -> None:
    runs = [synthetic.record("s", "lser", seed, level=0.9, spread=0.0) for seed in range(3)]
    runs[1].final.update(metric=0.3, reward=3.0, length=2.0)
    table = tables.measures(first(runs))
    row = dict(zip(table.columns, table.rows[0], strict=False))
    assert row["worst run"] == "0.300"
    assert row["runs that fell"] == "1 of 3"
    assert row["share of possible"].startswith("0.69 [")
    assert row["reward per step"].startswith("1.4")


def test_a_platform_without_known_scores_has_no_share_of_the_possible() -> None:
    simulator = {"name": "somebodys-own"}
    runs = [synthetic.record("s", "lser", s, level=0.9, simulator=simulator) for s in range(3)]
    table = tables.measures(first(runs))
    assert table.columns[1:3] == ("over training", "worst run")


def test_what_is_compared_with_nothing_has_no_column_of_differences() -> None:
    table = tables.measures(first([synthetic.record("s", "lser", 0, level=0.9)]))
    assert not any("minus" in column for column in table.columns)
    assert all(len(row) == len(table.columns) for row in table.rows)


def test_shares_of_the_running_time_add_up() -> None:
    table = tables.times(first(synthetic.demo()))
    assert table.columns[5:] == ("env, %", "replay, %", "learn, %", "evaluate, %", "rest, %")
    for row in table.rows:
        assert sum(float(cell) for cell in row[5:]) == pytest.approx(100, abs=0.3)


def test_names_are_never_cut_in_a_terminal() -> None:
    names = ("a recommender with a very long name", "the linear bandit with Thompson sampling")
    runs = [
        synthetic.record("compare", name, seed, level=0.5 + 0.1 * at)
        for at, name in enumerate(names)
        for seed in range(3)
    ]
    text = panel_text(first(runs))
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    assert "very long" in text
    assert "minus" not in text.split("difference")[0]


CRITIC = {
    "learning_metric": 0.4, "regret": 120.0, "value_own_mean": 50.0, "value_bound_high": 100.0,
    "value_spread": 2.5, "one_reward": 0.25, "saturated": 0.5,
    "value_replayed_mean": 40.0, "value_replayed_largest": 130.0, "value_own_largest": 110.0,
}  # fmt: skip


def told(run: Record, **last: float) -> Record:
    """The run, of which every point says `CRITIC`, and the last one something else of it."""
    *before, end = run.curve
    curve = [*({**line, **CRITIC} for line in before), {**end, **CRITIC, **last}]
    return replace(run, curve=curve)


def test_what_runs_told_while_learning_is_a_table_of_its_own() -> None:
    runs = [
        told(run, learning_metric=0.6, value_own_mean=150.0, one_reward=0.25)
        if run.label == "lser"
        else run
        for run in synthetic.demo()
    ]
    table = while_learning(first(runs))
    assert table is not None
    [ours, theirs] = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    assert ours == {
        "arm": "LSER",
        "CTR while learning": "0.600",
        "regret": "120",
        "value over bound, end": "1.50",
        "at most": "1.50",
        "of what is replayed": "0.40",
        "largest": "1.30",
        "spread of values": "2.50",
        "batches of one reward": "25%",
        "actions at their bounds": "50%",
    }
    assert set(theirs.values()) == {"uniform", "–"}


def test_where_no_run_told_anything_there_is_no_such_table() -> None:
    assert while_learning(first(synthetic.demo())) is None


@pytest.mark.parametrize("broken", [math.inf, -math.inf, math.nan])
def test_a_critic_that_broke_does_not_end_the_figure(broken: float) -> None:
    runs = [told(run, value_own_mean=broken, value_own_largest=broken) for run in synthetic.demo()]
    *_, drawn = panel_figures(first(runs))
    assert drawn.name.endswith("-values")
    assert while_learning(first(runs)) is not None


@pytest.mark.parametrize("highest", [80.0, 45_000.0])
def test_what_critics_expect_is_a_figure_where_runs_kept_it(highest: float) -> None:
    runs = [told(run, value_own_mean=highest) for run in synthetic.demo()]
    *_, drawn = panel_figures(first(runs))
    assert drawn.name.endswith("-values")
    assert f"At the end: LSER {highest / 100:.2f}".rstrip("0") in drawn.sentence.replace(",", "")
    assert not any("values" in one.name for one in panel_figures(first(synthetic.demo())))


def test_a_bound_without_a_value_beside_it_is_no_value() -> None:
    runs = [told(run, regret=1.0) for run in synthetic.demo()]
    for run in runs:
        for line in run.curve:
            line.pop("value_own_mean", None)
    table = while_learning(first(runs))
    assert table is not None
    assert "value over bound, end" not in table.columns


def test_a_value_that_came_back_is_seen_at_its_most() -> None:
    runs = [told(run, value_own_mean=20.0) for run in synthetic.demo()]
    table = while_learning(first(runs))
    assert table is not None
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert (row["value over bound, end"], row["at most"]) == ("0.20", "0.50")


def test_reference_policies_stand_below_the_arms() -> None:
    runs = [synthetic.record("s", "lser", seed, level=0.9) for seed in range(3)]
    table, found = tables.scores(first(runs)), first(runs)
    assert found.panel.scale is not None
    known = {row[0]: row[3] for row in table.rows[1:]}
    assert known["linear bandit"] == "0.899"
    names = [found.panel.scale.best.name, found.panel.scale.random.name]
    assert [*known][:: len(known) - 1] == names
    assert "reference policies" in table.caption
    own = {"name": "somebodys-own"}
    elsewhere = [synthetic.record("s", "lser", s, level=0.9, simulator=own) for s in range(3)]
    assert len(tables.scores(first(elsewhere)).rows) == 1


def drawn(arm: str, seed: int, gap: float, memory: str = "") -> Record:
    """A run that ends `gap` above its seed's level, whose mean over seeds is not 0."""
    luck = [0.0, 0.03, -0.03, 0.01, -0.01, 0.02][seed % 6]
    found = synthetic.record("s", arm, seed, level=0.5, memory={"name": memory or arm})
    for line in (*found.curve, found.final):
        line["reward"] = line["length"] * (0.5 + gap + (luck if gap else 0.0))
    return found


def test_a_difference_that_holm_undoes_has_a_question_mark() -> None:
    """One of seven arms is above uniform by p = .02 or so: seven looks make that nothing."""
    gaps = {"lser": 0.03, **dict.fromkeys(("per", "der", "aer", "ser", "her", "lser-p"), 0.001)}
    alone = [drawn(arm, s, g) for arm, g in (("lser", 0.03), ("uniform", 0.0)) for s in range(6)]
    every = [drawn(arm, s, g) for arm, g in {**gaps, "uniform": 0.0}.items() for s in range(6)]
    for runs, marked in ((alone, False), (every, True)):
        table = tables.measures(first(runs))
        [row] = [row for row in table.rows if row[0] == "LSER"]
        low = float(row[-1].partition("[")[2].partition(",")[0])
        assert low > 0
        assert row[-1].endswith("?") is marked
        assert "question mark" in table.caption


def test_a_maps_readings_are_corrected_over_its_cells() -> None:
    panels = [
        found
        for study in find_out(studies(synthetic.small_studies(6)))
        if study.study.name == "bazaar-map"
        for found in study.panels
    ]
    table = tables.map_table(panels, "uniform")
    cells = map_cells(panels, "lser", "uniform")
    assert len(table.rows) == len(cells) == 9
    assert table.columns[-2:] == ("p, Holm", "reading")
    assert [row[-1] for row in table.rows] == [tables.SHORT[cell.reading] for cell in cells]
    assert all(cell.p >= cell.pair.p for cell in cells)
    assert "over the 9 cells" in table.caption
