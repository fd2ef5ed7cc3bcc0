"""A loop of one's own leaves a record like any other."""

import json

import numpy as np
import pytest

import lser
from lser.experiments import records
from lser.report import build_report


def keep(folder, memory, seed, scores, **more):
    named = {"simulator": "my shop", "memory": memory, "seed": seed, "metric": "sales", **more}
    with lser.record(folder, **named) as run:
        for number, score in enumerate(scores):
            run.point(sessions=100 * number, metric=score)


def test_the_record_has_its_curve_and_its_last_point_as_its_score(tmp_path):
    keep(tmp_path / "a", "mine", 3, [0.1, 0.2])
    (found,) = records.find(tmp_path)
    assert (found.simulator, found.memory, found.seed) == ("my shop", "mine", 3)
    assert (found.status, found.metric, found.label) == ("done", "sales", "mine")
    assert [line["metric"] for line in found.curve] == [0.1, 0.2]
    assert found.final["metric"] == 0.2
    assert found.final["sessions"] == 100


def test_a_final_score_of_its_own_stands(tmp_path):
    with lser.record(tmp_path / "a", simulator="s", memory="m") as run:
        run.point(sessions=0, metric=0.1, reward=2.0)
        run.final(sessions=50, metric=0.7, metric_se=0.01)
    found = records.load(tmp_path / "a")
    assert found.final["metric"] == 0.7
    assert found.curve[0]["reward"] == 2.0


def test_an_exception_marks_it_as_failed_and_passes(tmp_path):
    with (
        pytest.raises(ZeroDivisionError),
        lser.record(tmp_path / "a", simulator="s", memory="m") as run,
    ):
        run.point(sessions=0, metric=1 / 0)
    found = records.load(tmp_path / "a")
    assert found.status == "failed"
    assert "ZeroDivisionError" in found.meta["error"]


def test_a_record_without_a_point_is_an_error(tmp_path):
    with (
        pytest.raises(ValueError, match="at least one point"),
        lser.record(tmp_path / "a", simulator="s", memory="m"),
    ):
        pass
    assert records.load(tmp_path / "a").status == "failed"


def test_sessions_that_do_not_rise_are_refused(tmp_path):
    with lser.record(tmp_path / "a", simulator="s", memory="m") as run:
        run.point(sessions=5, metric=0.0)
        with pytest.raises(ValueError, match="sessions must rise, got 5 after 5"):
            run.point(sessions=5, metric=0.0)


def test_the_same_loop_again_replaces_its_record(tmp_path):
    keep(tmp_path / "a", "mine", 0, [0.1, 0.2, 0.3])
    keep(tmp_path / "a", "mine", 0, [0.5])
    assert [line["metric"] for line in records.load(tmp_path / "a").curve] == [0.5]


def test_another_loop_in_its_folder_is_refused(tmp_path):
    keep(tmp_path / "a", "mine", 0, [0.1])
    with pytest.raises(ValueError, match="another experiment"):
        keep(tmp_path / "a", "other", 0, [0.1])


def test_it_is_running_while_it_runs_and_has_one_owner(tmp_path):
    with lser.record(tmp_path / "a", simulator="s", memory="m") as run:
        run.point(sessions=0, metric=0.0)
        assert records.load(tmp_path / "a").status == "running"
        with pytest.raises(ValueError, match="written by another"):
            lser.record(tmp_path / "a", simulator="s", memory="m")
    assert records.load(tmp_path / "a").status == "done"


def test_settings_keep_unlike_runs_apart(tmp_path):
    keep(tmp_path / "a", "mine", 0, [0.1], settings={"rate": 0.5})
    assert json.loads((tmp_path / "a" / "experiment.json").read_text())["rate"] == 0.5


def test_numbers_of_any_kind_are_kept_by_a_loop_of_one_s_own(tmp_path):
    import torch

    with lser.record(tmp_path / "a", simulator="s", memory="m", seed=np.int64(3)) as run:
        run.point(sessions=np.int64(5), metric=np.float32(0.5), reward=torch.tensor(2.0))
    held = records.load(tmp_path / "a")
    assert held.seed == 3
    assert held.curve == [{"sessions": 5, "metric": 0.5, "reward": 2.0}]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sessions": 1, "metric": "high"}, "metric must be a number, got 'high'"),
        ({"sessions": 1, "metric": 0.1, "reward": None}, "reward must be a number, got None"),
        ({"sessions": 1.5, "metric": 0.1}, "sessions must be an integer, got 1.5"),
        ({"sessions": -1, "metric": 0.1}, "sessions must be >= 0, got -1"),
    ],
)
def test_what_is_no_number_is_refused_by_name_and_not_kept(given, message, tmp_path):
    with lser.record(tmp_path / "a", simulator="s", memory="m") as run:
        run.point(sessions=0, metric=0.5)
        for keep_it in (run.point, run.final):
            with pytest.raises(ValueError, match=message):
                keep_it(**given)
    held = records.load(tmp_path / "a")
    assert (len(held.curve), held.final["metric"]) == (1, 0.5)


@pytest.mark.slow
def test_the_report_draws_it(tmp_path):
    for seed in range(2):
        keep(tmp_path / f"a{seed}", "mine", seed, [0.1, 0.2 + seed / 100])
        keep(tmp_path / f"b{seed}", "uniform", seed, [0.1, 0.1 + seed / 100])
    page = build_report(records.find(tmp_path), tmp_path / "report").read_text()
    assert "my shop" in page
    assert "mine" in page
