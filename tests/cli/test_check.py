"""`lser check`: what is whole, what is damaged, and why."""

import gzip

import numpy as np
import pytest
from small import trained, written

from lser.cli import main
from lser.experiments import records
from lser.experiments.run import AGENT
from lser.files import State, save
from lser.replay import LocalityReplay, UniformReplay
from lser.training import checkpoint


def filled(kind=UniformReplay, **knobs):
    rows, replay = 30, kind(50, 3, 2, **knobs)
    rng = np.random.default_rng(0)
    seen, acted = rng.normal(size=(rows, 3)), rng.normal(size=(rows, 2))
    flags = np.zeros(rows, bool)
    replay.extend(seen, acted, rng.random(rows), seen, flags, flags)
    return replay


def checked(path, capsys):
    """The exit code, the lines on stdout and the count on stderr."""
    code = main(["check", str(path)])
    found = capsys.readouterr()
    return code, found.out.splitlines(), found.err.strip()


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (UniformReplay, "uniform memory, 30 of 50 transitions"),
        (LocalityReplay, "lser memory, 30 of 50 transitions"),
    ],
)
def test_a_memory_is_whole_and_described(kind, words, tmp_path, capsys):
    filled(kind).save(tmp_path / "m.lser")
    code, lines, count = checked(tmp_path / "m.lser", capsys)
    assert (code, count) == (0, "1 whole, 0 damaged")
    assert lines == [f"whole   {tmp_path}/m.lser: {words}"]


def test_a_memory_with_its_rows_in_a_file_is_rebuilt_elsewhere(tmp_path, capsys):
    replay = filled(storage="memmap", path=tmp_path / "rows")
    replay.save(tmp_path / "m.lser")
    code, lines, _ = checked(tmp_path / "m.lser", capsys)
    assert code == 0
    assert "30 of 50 transitions" in lines[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.lser", "rows"]


def test_every_byte_counts(tmp_path, capsys):
    path = tmp_path / "m.lser"
    filled().save(path)
    data = path.read_bytes()
    rng = np.random.default_rng(0)
    for at in [0, 9, len(data) - 1, *rng.integers(0, len(data), 20).tolist()]:
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        code, lines, count = checked(path, capsys)
        assert (code, count) == (1, "0 whole, 1 damaged")
        assert lines[0].startswith("DAMAGED ")


def test_a_checkpoint_and_a_foreign_file(tmp_path, capsys):
    path = checkpoint.save(tmp_path, 3, {"agent": {}, "sums": [1.0]})
    save(tmp_path / "other.lser", "soup", State({}, {"a": np.zeros(2)}))
    code, lines, count = checked(tmp_path, capsys)
    assert (code, count) == (0, "2 whole, 0 damaged")
    assert lines == [
        f"whole   {path}: checkpoint of agent, sums",
        f"whole   {tmp_path}/other.lser: 'soup', of another program: 1 arrays, checksums right",
    ]


def test_a_run_is_its_record_and_its_agent(tmp_path, capsys):
    folder = trained(tmp_path, "bazaar", "uniform", "ridge")
    capsys.readouterr()
    code, lines, count = checked(tmp_path, capsys)
    assert (code, count) == (0, "2 whole, 0 damaged")
    assert lines[0] == f"whole   {folder}: record, done, 3 evaluations"
    assert f"{AGENT}/" in lines[1]


def test_a_saved_agent_is_loaded(tmp_path, capsys):
    from lser.agents import DDPG

    DDPG(4, [-1.0], [1.0]).save(tmp_path / "a.lser")
    code, lines, _ = checked(tmp_path / "a.lser", capsys)
    assert code == 0
    assert lines[0].endswith(": DDPG agent")


def test_records_are_looked_at_one_by_one(tmp_path, capsys):
    written(tmp_path / "whole", curve=[0.1, 0.2])
    written(tmp_path / "open", final=None)
    written(tmp_path / "torn")
    (tmp_path / "torn" / "meta.json").write_text("{")
    code, lines, count = checked(tmp_path, capsys)
    assert (code, count) == (1, "1 whole, 2 damaged")
    by_name = {line.split(": ")[0].rpartition("/")[2]: line for line in lines}
    assert by_name["whole"].endswith("record, done, 2 evaluations")
    assert by_name["open"].endswith("a finished record without a final evaluation")
    assert "meta.json" in by_name["torn"]


def test_lines_of_a_packed_file_have_their_numbers(tmp_path, capsys):
    good = records.load(written(tmp_path / "runs" / "a"))
    path = records.pack([good], tmp_path / "p.jsonl.gz")
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()) + b"{}\n"))
    code, lines, count = checked(path, capsys)
    assert (code, count) == (1, "1 whole, 1 damaged")
    assert any(line.startswith(f"DAMAGED {path}:2") for line in lines)


def test_names_from_files_cannot_write_to_the_terminal(tmp_path, capsys):
    save(tmp_path / "x.lser", "\x1b[2Jgone\nwhole", State({}, {}))
    _, lines, _ = checked(tmp_path / "x.lser", capsys)
    assert len(lines) == 1
    assert "\x1b" not in lines[0]


@pytest.mark.parametrize("content", [None, b"", b"not ours at all"])
def test_what_is_no_file_of_ours_is_not_whole(content, tmp_path, capsys):
    if content is None:
        code, lines, count = checked(tmp_path, capsys)  # nothing to check is not: all is well
        assert (code, lines, count) == (1, [], "0 whole, 0 damaged")
    else:
        (tmp_path / "x").write_bytes(content)
        code, lines, _ = checked(tmp_path / "x", capsys)
        assert code == 1
        assert "is not a file that lser saved" in lines[0]


def test_a_place_that_is_not_there_is_said(tmp_path, capsys):
    code, lines, error = checked(tmp_path / "nowhere", capsys)
    assert (code, lines) == (2, [])
    assert error == f"lser: error: {tmp_path}/nowhere does not exist"
