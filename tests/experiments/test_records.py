"""Records: what is read from folders and packed files."""

import gzip
import json
from pathlib import Path

import pytest

from lser.experiments import records
from lser.experiments.experiment import Experiment, to_json
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
