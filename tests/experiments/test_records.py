"""Records: what is read from folders and packed files."""

import gzip
import json
from pathlib import Path

import pytest

from lser.experiments import records
from lser.experiments.experiment import Experiment, from_json, to_json
from lser.experiments.recording import Recorder
from lser.experiments.study import Job, finished


def write(folder: Path, *, label: str = "lser", seed: int = 0, done: bool = True) -> Path:
    folder.mkdir(parents=True)
    experiment = {
        "study": "comparison",
        "label": label,
        "simulator": {"name": "bazaar", "sparsity": 0.1},
        "memory": {"name": label, "capacity": 100},
        "agent": {"name": "ddpg"},
        "metric": "ctr",
        "seed": seed,
    }
    line = {"sessions": 10, "metric": 0.5}
    (folder / records.EXPERIMENT).write_text(json.dumps(experiment))
    (folder / records.META).write_text(json.dumps({"status": "done" if done else "running"}))
    (folder / records.CURVE).write_text(json.dumps(line) + "\n")
    if done:
        (folder / records.FINAL).write_text(json.dumps(line))
        (folder / records.TIMES).write_text(json.dumps({"env": 2.0}))
    return folder


def test_a_folder_is_read_whole(tmp_path: Path) -> None:
    record = records.load(write(tmp_path / "a", seed=3))
    assert (record.study, record.label, record.simulator) == ("comparison", "lser", "bazaar")
    assert (record.memory, record.agent, record.seed) == ("lser", "ddpg", 3)
    assert (record.status, record.metric) == ("done", "ctr")
    assert record.curve == [{"sessions": 10, "metric": 0.5}]
    assert record.final == {"sessions": 10, "metric": 0.5, "times": {"env": 2.0}}


def test_a_line_still_being_written_is_left_out(tmp_path: Path) -> None:
    folder = write(tmp_path / "a", done=False)
    with (folder / records.CURVE).open("a") as file:
        file.write('{"sessions": 20, "met')
    record = records.load(folder)
    assert len(record.curve) == 1
    assert record.final is None
    assert record.status == "died"  # nobody owns the folder


def test_a_folder_without_an_experiment_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is no record"):
        records.load(tmp_path)


def test_a_broken_part_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path / "a")
    (folder / records.META).write_text("{")
    with pytest.raises(ValueError, match=r"meta\.json"):
        records.load(folder)


def test_find_reads_folders_and_packed_files(tmp_path: Path) -> None:
    write(tmp_path / "deep" / "b", label="uniform")
    write(tmp_path / "a", seed=1)
    found = records.find(tmp_path)
    assert [(r.label, r.seed) for r in found] == [("lser", 1), ("uniform", 0)]
    packed = records.pack(found, tmp_path / "elsewhere" / "records.jsonl.gz")
    assert [r.curve for r in records.find(packed)] == [r.curve for r in found]
    assert len(records.find(tmp_path)) == 4


def test_equal_records_pack_to_equal_bytes_in_any_order(tmp_path: Path) -> None:
    found = [records.load(write(tmp_path / str(seed), seed=seed)) for seed in range(3)]
    first = records.pack(found, tmp_path / "one.jsonl.gz").read_bytes()
    second = records.pack(reversed(found), tmp_path / "two.jsonl.gz").read_bytes()
    assert first == second


def test_a_damaged_packed_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"experiment": {}}\n')[:-9])
    (found,) = records.find(path)
    assert found.status == "damaged"
    assert "bad.jsonl.gz" in found.meta["error"]


def test_a_damaged_line_of_a_packed_file_spares_the_others(tmp_path: Path) -> None:
    good = records.load(write(tmp_path / "a"))
    path = records.pack([good], tmp_path / "some.jsonl.gz")
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()) + b'{"experiment": 3}\n'))
    bad, whole = records.find(path)
    assert (bad.status, bad.line, whole.status) == ("damaged", 2, "done")
    assert bad.where == f"{path}:2"


DAMAGE = {
    records.EXPERIMENT: ["", "[]", "{}", "null", '{"simulator": 3}', "\xff", "[" * 100_000],
    records.META: ["", "[1]", "3"],
    records.CURVE: ["{\n", '{"sessions": 1}\n', "7\n", '{"sessions": "x", "metric": 1}\n'],
    records.FINAL: ["", "{}", '{"metric": "high"}', '{"metric": 1' + 400 * "0" + "}"],
    records.TIMES: ["", "[]", '{"wall": "long"}'],
}


@pytest.mark.parametrize(("part", "text"), [(part, t) for part in DAMAGE for t in DAMAGE[part]])
def test_a_damaged_record_is_listed_and_the_rest_goes_on(
    part: str, text: str, tmp_path: Path
) -> None:
    write(tmp_path / "good", seed=1)
    (write(tmp_path / "bad") / part).write_bytes(text.encode("latin-1"))
    found = {record.path.name: record for record in records.find(tmp_path)}
    assert found["good"].status == "done"
    assert found["bad"].status == "damaged"
    assert "bad" in found["bad"].meta["error"]
    with pytest.raises(ValueError, match="bad"):
        records.load(tmp_path / "bad")


def test_a_missing_root_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nowhere"):
        records.find(tmp_path / "nowhere")


def test_a_damaged_record_does_not_stop_a_study(tmp_path: Path) -> None:
    job = Job({}, str(write(tmp_path / "run")), "")
    assert finished(job)
    (tmp_path / "run" / records.META).write_text("")
    assert not finished(job)


def test_the_last_line_is_known_without_reading_it_back(tmp_path, monkeypatch):
    recorder = Recorder(tmp_path, to_json(Experiment()), "")
    assert recorder.last_line is None
    recorder.append({"metric": 0.1})
    recorder.append({"metric": 0.2})
    with monkeypatch.context() as patched:
        patched.setattr("json.loads", None)  # asked at every step: nothing is parsed
        assert recorder.last_line == {"metric": 0.2}
    recorder.keep(recorder.curve[:1])
    assert recorder.last_line == {"metric": 0.1}
    recorder.begin_anew()
    assert recorder.last_line is None


def packed_line(**changes):
    parts = {part: {"name": part} for part in ("simulator", "memory", "agent")}
    whole = {"experiment": {**parts, "seed": 0}, "meta": {"status": "done"}, "curve": []}
    return {**whole, "final": {"metric": 0.5}, **changes}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"meta": [1]}, "meta.json holds no object"),
        ({"curve": {}}, "its curve is no list"),
        ({"curve": [3]}, "'3' is no evaluation"),
        ({"curve": [{"sessions": float("inf"), "metric": 1}]}, "sessions=inf is no count"),
        ({"final": {"metric": 1, "times": {"wall": "x"}}}, "wall='x' is no number"),
        ({"experiment": []}, "has no simulator with a name"),
        ({"experiment": {**packed_line()["experiment"], "seed": "0"}}, "seed='0' is no whole"),
        ({"experiment": {**packed_line()["experiment"], "seed": True}}, "seed=True is no whole"),
    ],
)
def test_what_is_wrong_with_a_line_is_said(changes, message, tmp_path):
    path = tmp_path / "p.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(packed_line(**changes)).encode() + b"\n"))
    (found,) = records.find(path)
    assert found.status == "damaged"
    assert message in found.meta["error"]


def test_a_file_that_is_too_large_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "MOST_BYTES", 100)
    folder = write(tmp_path / "a")
    with pytest.raises(ValueError, match="is too large"):
        records.load(folder)
    path = tmp_path / "p.jsonl.gz"
    path.write_bytes(gzip.compress(b"x" * 1_000))
    (found,) = records.find(path)
    assert "too large, unpacked: stopped at line 1" in found.meta["error"]


def test_a_packed_file_has_an_end(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "MOST_RECORDS", 2)
    path = tmp_path / "p.jsonl.gz"
    path.write_bytes(gzip.compress((json.dumps(packed_line()) + "\n").encode() * 3))
    (found,) = records.find(path)
    assert "stopped at line 3" in found.meta["error"]


def test_a_record_of_a_fleet_does_not_have_its_own_times(tmp_path):
    assert not records.Record(tmp_path, {}).shared
    assert records.Record(tmp_path, {}, {"engine": "fleet"}).shared


def test_what_a_record_does_not_say_has_its_default(tmp_path):
    bare = records.Record(tmp_path, {"memory": {"name": "per"}})
    assert (bare.study, bare.label, bare.simulator, bare.seed) == ("", "per", "", 0)
    assert (bare.status, bare.metric, bare.where) == ("running", "metric", str(tmp_path))


def test_moving_records_changes_no_order(tmp_path):
    for names in (("x", "y"), ("z", "a")):
        held = [records.load(write(tmp_path / name, seed=seed)) for seed, name in enumerate(names)]
        assert [record.seed for record in records.ordered(held)] == [0, 1]


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        ({}, "an experiment needs a simulator with a name, got None"),
        ({"simulator": "bazaar"}, "an experiment needs a simulator with a name, got 'bazaar'"),
        ({"simulator": {"items": 3}}, "needs a simulator with a name"),
    ],
)
def test_plain_data_without_its_parts_is_no_experiment(plain, message):
    with pytest.raises(ValueError, match=message):
        from_json(plain)


def test_a_record_keeps_where_and_with_what_it_ran(tmp_path):
    recorder = Recorder(tmp_path, to_json(Experiment()), "a command")
    recorder.begin("ctr")
    meta = records.load(tmp_path).meta
    assert meta["command"] == "a command"
    assert meta["versions"].keys() >= {"python", "lser", "numpy", "torch"}
    assert meta["machine"].keys() == {"system", "processor", "cores", "python"}
    assert meta["started"].endswith("+00:00")
    assert len(meta["parts"]) == 1


@pytest.mark.parametrize("text", ["[]", "{", '{"parts": 3}', '{"parts": [1, {"x": 2}]}'])
def test_earlier_parts_that_cannot_be_read_are_left_out(text, tmp_path):
    (tmp_path / records.META).write_text(text)
    assert len(Recorder(tmp_path, to_json(Experiment()), "").meta["parts"]) == 1


def test_an_experiment_that_is_no_json_stops_its_recorder(tmp_path):
    (tmp_path / records.EXPERIMENT).write_text("{")
    with pytest.raises(ValueError, match="is not JSON"):
        Recorder(tmp_path, to_json(Experiment()), "")


def test_the_folder_of_a_package_that_is_no_checkout_has_no_commit(monkeypatch, tmp_path):
    from lser.experiments import recording

    recording._git_commit.cache_clear()
    monkeypatch.setattr(recording, "__file__", str(tmp_path / "a" / "b" / "c" / "d.py"))
    assert recording._git_commit() is None
    (tmp_path / ".git").mkdir()
    monkeypatch.setattr(recording, "__file__", str(tmp_path / "b" / "c" / "d" / "e.py"))
    recording._git_commit.cache_clear()
    assert recording._git_commit() is None  # nor has one that git cannot read
    recording._git_commit.cache_clear()
