"""Files of strangers: whatever they hold, loading them fails or works, and never more than that."""

import contextlib
import gzip
import os
import random
import shutil
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lser import files
from lser.agents.saved import load_agent
from lser.catalogue import MEMORIES
from lser.cli import main
from lser.cli.check import findings
from lser.experiments import records
from lser.replay import load_replay
from lser.training import checkpoint

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden" / "files"
sys.path.append(str(ROOT))  # the drill is not installed

from drill import guided  # noqa: E402
from drill.forge import damaged, forged  # noqa: E402

SAMPLES = sorted(GOLDEN.glob("*/*.lser"))
FORGED = 500


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_files_of_every_version_open(path):
    kind, state = files.load(path)
    if kind == "checkpoint":
        assert {"agent", "replay", "traffic", "curve"} <= checkpoint.load(path).keys()
    elif kind == "DDPG":
        assert load_agent(path).observation_dim == 4
    else:
        assert len(load_replay(path)) == int((state.arrays["ids"] >= 0).sum())
    assert all(finding.whole for finding in findings(path))


def test_every_memory_has_a_file_of_this_version():
    assert {path.stem for path in (GOLDEN / str(files.VERSION)).glob("*.lser")} >= set(MEMORIES.own)
    assert {path.name for path in GOLDEN.iterdir()} == set(map(str, files.READABLE))


def test_a_record_of_every_version_is_read():
    for folder in GOLDEN.iterdir():
        record = records.load(folder / "record")
        assert (record.status, len(record.curve)) == ("done", 3)


def test_forged_files_are_refused_or_work(tmp_path):
    chance = random.Random(15)
    paths = []
    for number in range(FORGED):
        paths.append(tmp_path / f"{number}.lser")
        forged(SAMPLES[number % len(SAMPLES)], paths[-1], chance)
    command = [sys.executable, "-m", "drill.loading", *map(str, paths)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    refused, used = map(int, done.stdout.split())
    assert refused + used == FORGED
    assert refused > FORGED // 2


def test_damaged_files_are_refused(tmp_path):
    chance, path = random.Random(16), tmp_path / "damaged.lser"
    for number in range(300):
        data = SAMPLES[number % len(SAMPLES)].read_bytes()
        broken = damaged(data, chance)
        if broken == data:  # zeros over zeros
            continue
        path.write_bytes(broken)
        with pytest.raises(ValueError):
            files.load(path)


def test_no_path_is_taken_from_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kind, state = files.load(GOLDEN / "4" / "uniform.lser")
    store = {**state.config["store"], "storage": "memmap", "path": str(tmp_path / "planted.py")}
    files.save("evil.lser", kind, files.State({**state.config, "store": store}, state.arrays))
    for rows_path in (None, tmp_path / "rows"):
        with pytest.raises(ValueError):
            load_replay("evil.lser", rows_path=rows_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["evil.lser"]


def test_check_says_what_is_whole_and_changes_nothing(tmp_path, capsys):
    for path in SAMPLES[:3]:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert main(["check", str(tmp_path)]) == 0
    broken = tmp_path / SAMPLES[0].name
    broken.write_bytes(broken.read_bytes()[:-1])
    assert main(["check", str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert f"DAMAGED {broken}" in out
    assert "2 whole, 1 damaged" in err
    assert set(before) == set(tmp_path.iterdir())
    assert main(["check", str(tmp_path / "none")]) == 2


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.binary(max_size=400), st.sampled_from(SAMPLES), st.integers(0, 10**6))
def test_any_bytes_are_a_file_or_a_value_error(tmp_path_factory, noise, sample, at):
    path = tmp_path_factory.getbasetemp() / "fuzzed.lser"
    data = bytearray(sample.read_bytes())
    at %= len(data)
    data[at : at + len(noise)] = noise
    path.write_bytes(data)
    assert len(list(findings(path))) == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(["experiment.json", "meta.json", "curve.jsonl", "final.json"]), JSON, st.data()
)
def test_any_json_in_a_record_is_read_or_damaged(tmp_path_factory, name, value, data):
    import json

    folder = tmp_path_factory.mktemp("record")
    for path in (GOLDEN / "4" / "record").glob("*.json*"):
        (folder / path.name).write_bytes(path.read_bytes())
    held = json.loads((folder / name).read_text().splitlines()[0]) if "curve" in name else None
    if held is None:
        held = json.loads((folder / name).read_text())
    held[data.draw(st.sampled_from(sorted(held)))] = value
    (folder / name).write_text(json.dumps(held) + "\n")
    assert main(["runs", str(folder)]) == 0
    assert main(["check", str(folder)]) in (0, 1)


WORDS = st.sampled_from(
    (
        *("train", "study", "runs", "check", "report", "resume", "watch", "evaluate", "theory"),
        *("bazaar", "lser", "--seed", "--out", "--dry-run", "--json", "--scale", "quick", "-1"),
        *("nan", "1e999"),
    )
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(WORDS | st.text(max_size=6), max_size=3))
def test_any_command_line_is_answered_without_a_traceback(tmp_path_factory, capsys, words):
    if words and words[0] in ("train", "study", "demo"):
        words = [*words, "--no-such-option"]  # nothing is to be started
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.getbasetemp())
        with contextlib.suppress(SystemExit):
            main(words)
    capsys.readouterr()


def test_a_packed_file_that_unpacks_to_too_much_is_damaged(tmp_path, monkeypatch):
    whole = next(path for path in (ROOT / "results").glob("demo.jsonl.gz"))
    assert {record.status for record in records.find(whole)} == {"done"}
    monkeypatch.setattr(records, "MOST_PACKED", 1 << 20)
    monkeypatch.setattr(records, "MOST_BYTES", 1 << 19)
    monkeypatch.setattr(records, "MOST_RECORDS", 1000)
    lines = {"line": b" " * (1 << 25), "lines": b"{}\n" * (1 << 16), "long": b"[1]" * (1 << 22)}
    for name, text in lines.items():
        with gzip.open(tmp_path / f"{name}.jsonl.gz", "wb") as file:
            file.write(text)
    tracemalloc.start()
    found = records.find(tmp_path)
    assert [record.status for record in found] == ["damaged"] * 3
    assert all("too large" in record.meta["error"] for record in found)
    assert tracemalloc.get_traced_memory()[1] < 20 << 20
    tracemalloc.stop()


def test_a_json_file_that_is_too_large_is_not_read(tmp_path):
    folder = Path(shutil.copytree(GOLDEN / "4" / "record", tmp_path / "record"))
    with (folder / "meta.json").open("ab") as file:
        file.truncate(1 << 40)  # a hole of a terabyte
    (record,) = records.find(tmp_path)
    assert record.status == "damaged"
    assert "too large" in record.meta["error"]


@pytest.mark.parametrize("target", ["files", "records", "packed", "commands"])
def test_the_fuzzer_s_first_inputs_do_no_harm(tmp_path, monkeypatch, target):
    """And the fuzzer would see it if they did: a file that lies is built with right checksums."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "record").mkdir()
    for data in guided.seeds(target):
        guided.TARGETS[target](data)
        if target == "files":
            path = tmp_path / "whole.lser"
            path.write_bytes(guided.with_checksums(data))
            assert all(finding.whole for finding in findings(path))
