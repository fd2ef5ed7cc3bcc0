"""Sentences say no more than the intervals allow."""

from collections.abc import Sequence

import synthetic

from lser.experiments.records import Record
from lser.report import sentences, verdicts
from lser.report.findings import Finding, StudyFindings, find_out, versus
from lser.report.sorting import studies


def found(runs: Sequence[Record]) -> list[StudyFindings]:
    return find_out(studies(runs))


def panel(first: list[float], second: list[float]) -> Finding:
    runs = [
        exact("lser" if group is first else "uniform", seed, score)
        for group in (first, second)
        for seed, score in enumerate(group)
    ]
    return found(runs)[0].panels[0]


def exact(label: str, seed: int, score: float) -> Record:
    run = synthetic.record("comparison", label, seed, level=0.5)
    assert run.final is not None
    run.final["metric"] = score
    return run


def test_clearly_is_said_only_when_the_interval_excludes_zero() -> None:
    apart = panel([0.8, 0.85, 0.9], [0.5, 0.56, 0.62])
    close = panel([0.5, 0.9, 0.7], [0.6, 0.6, 0.65])
    assert sentences.best_against_reference(apart).startswith("LSER ends clearly above")
    assert "not separated" in sentences.best_against_reference(close)
    assert "clearly" not in sentences.curves(close)


def test_a_loss_is_named_as_plainly_as_a_win() -> None:
    lost = panel([0.5, 0.56, 0.62], [0.8, 0.85, 0.9])
    assert sentences.best_against_reference(lost).startswith("LSER ends clearly below")
    groups = dict(verdicts.in_short(found(lost.panel.arms[0].runs + lost.panel.arms[1].runs)))
    assert groups[""] == [
        "LSER ends clearly above uniform in 0 of 1 setting outside the Bazaar map, below in 1; "
        "after Holm's correction over them 1 is left."
    ]
    assert "Where LSER wins" not in groups
    assert "clearly below" in groups["Where it does not"][0]


def test_a_single_seed_decides_nothing() -> None:
    single = panel([0.9], [0.1])
    text = sentences.best_against_reference(single)
    assert text == "1 seed cannot tell LSER from uniform"


def test_arms_without_a_common_seed_cannot_be_told_apart() -> None:
    ours = panel([0.9, 0.8], [0.1, 0.2]).panel
    other = studies([exact("uniform", seed, 0.3) for seed in (7, 8)])[0].panels[0].arms[0]
    assert versus(ours.arms[0], other, seed=0, key="k").verdict == "unknown"


def test_the_forest_sentence_sorts_arms_by_verdict() -> None:
    runs = [
        exact(label, seed, level + 0.01 * seed + jitter)
        for label, level in (("lser", 0.8), ("uniform", 0.5), ("random-code", 0.2), ("per", 0.5))
        for seed, jitter in enumerate((0.0, 0.012, -0.02) if label == "per" else (0.0,) * 3)
    ]
    text = sentences.forest(found(runs)[0].panels[0])
    assert text == (
        "Clearly above uniform: LSER; clearly below uniform: random-code; "
        "not separated from uniform: PER."
    )


def test_the_controls_say_what_carries_the_gain() -> None:
    runs = [
        exact(label, seed, level + 0.01 * ((seed * 7) % 3))
        for label, level in (("lser", 0.9), ("reward-top", 0.6), ("uniform", 0.5))
        for seed in range(4)
    ]
    runs[5].final["metric"] += 0.005
    groups = dict(verdicts.in_short(found(runs)))
    assert "so locality adds to reward order" in groups["What carries the gain"][0]


def test_one_run_is_no_winner_and_its_runs_do_not_differ() -> None:
    one = find_out(studies([synthetic.record("s", "lser", 0, level=0.9, spread=0.0)]))[0].panels[0]
    assert sentences.best_against_reference(one) == "LSER ends at 0.900"
    assert sentences.spread(one) == "Each mark is one run."
    assert sentences.caution(one) == "One seed has no interval and no verdict."


def test_few_seeds_come_with_a_caution() -> None:
    assert "narrower than they should be" in sentences.caution(panel([0.5, 0.6], [0.5, 0.6]))
    many = [0.01 * i for i in range(12)]
    assert sentences.caution(panel(many, many[::-1])) == ""
