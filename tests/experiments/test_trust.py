"""Records: nothing that is finished is lost, nothing has two writers, nothing half-read goes on."""

import json
import os
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from test_run import Stop, outcome, small

from lser import files, locks
from lser.cli import main
from lser.experiments import recording, records
from lser.experiments.owner import OWNER, Owner, owned
from lser.experiments.run import CHECKPOINTS, Run, run
from lser.training.checkpoint import Checkpoints
from waiting import LIMIT, until

QUICK = ["--users", "4", "--batch-size", "16", "--capacity", "500", "--evaluate-every", "50"]
QUICK += ["--evaluate-sessions", "10", "--final-sessions", "10"]


def interrupted(folder, *, at=33, **changes):
    """A run that died with a checkpoint, and an outcome to compare with."""
    under_way = Run(small(**changes), folder)

    def stop(status):
        if status.step.sessions >= at:
            under_way.checkpoint()
            raise Stop

    with pytest.raises(Stop):
        under_way.go(stop)


def test_a_finished_record_is_not_run_again_unasked(tmp_path):
    experiment = small(sessions=20)
    run(experiment, tmp_path)
    before = {p.name: p.read_bytes() for p in tmp_path.glob("*.json*")}
    with pytest.raises(ValueError, match="is finished; --again"):
        run(experiment, tmp_path)
    assert {p.name: p.read_bytes() for p in tmp_path.glob("*.json*")} == before
    first = outcome(tmp_path)
    run(experiment, tmp_path, again=True)
    assert outcome(tmp_path) == first


def test_unusable_checkpoints_do_not_push_out_new_ones(tmp_path):
    for number in (900, 901):
        (tmp_path / f"{number:012d}.lser").write_bytes(b"damaged")
    kept = Checkpoints(tmp_path)
    for number in range(1, 6):
        assert kept.save(number, {"at": number}).exists()
    names = sorted(int(path.stem) for path in tmp_path.glob("*.lser"))
    assert names == [4, 5, 900, 901]


@pytest.mark.parametrize("change", ["version", "damage"])
def test_checkpoints_that_cannot_be_read_stop_and_ask(tmp_path, change):
    interrupted(tmp_path)
    curve = (tmp_path / "curve.jsonl").read_bytes()
    for path in (tmp_path / CHECKPOINTS).glob("*.lser"):
        data = bytearray(path.read_bytes())
        if change == "version":
            data[8:12] = struct.pack("<I", 99)
        else:
            data[-1] ^= 1
        path.write_bytes(data)
    with pytest.raises(ValueError, match=r"--again starts from nothing"):
        run(small(), tmp_path)
    assert (tmp_path / "curve.jsonl").read_bytes() == curve
    run(small(), tmp_path / "whole")
    run(small(), tmp_path, again=True)
    assert outcome(tmp_path) == outcome(tmp_path / "whole")


def test_a_folder_has_one_owner(tmp_path):
    with Owner(tmp_path):
        assert owned(tmp_path)
        with pytest.raises(ValueError, match=rf"another process \(process {os.getpid()} on "):
            Run(small(), tmp_path)
    assert not owned(tmp_path)
    assert not (tmp_path / "experiment.json").exists()


def test_running_without_an_owner_has_died(tmp_path):
    interrupted(tmp_path)
    meta = json.loads((tmp_path / "meta.json").read_text())
    (tmp_path / "meta.json").write_text(json.dumps({**meta, "status": "running", "error": None}))
    assert records.load(tmp_path).status == "died"
    with Owner(tmp_path):
        assert records.load(tmp_path).status == "running"
    (tmp_path / OWNER).write_text('{"pid": 1, "host": "elsewhere.example"}')
    assert records.load(tmp_path).status == "running"  # nobody here can tell


def test_watching_a_run_that_died_ends(tmp_path, capsys):
    interrupted(tmp_path)
    (tmp_path / "meta.json").write_text('{"status": "running"}')
    assert main(["watch", str(tmp_path)]) == 0
    assert "died" in capsys.readouterr().out


def test_a_lost_tail_of_the_curve_comes_back_from_the_checkpoint(tmp_path):
    run(small(), tmp_path / "whole")
    interrupted(tmp_path / "parts", at=45)
    (tmp_path / "parts" / "curve.jsonl").write_bytes(b"")  # what a loss of power may leave
    run(small(), tmp_path / "parts")
    assert outcome(tmp_path / "parts") == outcome(tmp_path / "whole")


def test_every_part_of_a_run_keeps_its_versions(tmp_path, monkeypatch):
    interrupted(tmp_path)
    before = json.loads((tmp_path / "meta.json").read_text())
    monkeypatch.setattr(recording, "_versions", lambda: {"numpy": "99.0"})
    run(small(), tmp_path)
    meta = records.load(tmp_path).meta
    assert [part["versions"] for part in meta["parts"]] == [before["versions"], {"numpy": "99.0"}]
    assert meta["started"] == before["started"]


def test_a_setting_that_is_newer_than_a_record_does_not_end_resuming(tmp_path):
    run(small(), tmp_path / "whole")
    interrupted(tmp_path / "parts")
    path = tmp_path / "parts" / "experiment.json"
    held = json.loads(path.read_text())
    del held["intervention"], held["memory"]["unseen"]  # as if they had come later
    path.write_text(json.dumps(held))
    run(small(), tmp_path / "parts")
    assert outcome(tmp_path / "parts") == outcome(tmp_path / "whole")


def test_resuming_keeps_the_seconds_between_checkpoints(tmp_path, monkeypatch):
    under_way = Run(small(), tmp_path, checkpoint_seconds=0.25)

    def stop(status):
        raise Stop

    with pytest.raises(Stop):
        under_way.go(stop)
    seen = []

    def go(self, watch):
        seen.append(self.checkpoint_seconds)
        raise ValueError("enough")

    monkeypatch.setattr(Run, "go", go)
    assert main(["resume", str(tmp_path)]) == 2
    assert seen == [0.25]


@pytest.mark.parametrize("seconds", ["nan", "-1"])
def test_impossible_seconds_between_checkpoints_are_refused(tmp_path, seconds, capsys):
    assert main(["train", "--out", str(tmp_path), *QUICK, "--checkpoint-seconds", seconds]) == 2
    assert "checkpoint_seconds" in capsys.readouterr().err


def test_json_files_reach_the_disk_before_their_names(tmp_path, monkeypatch):
    synced = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(fd), real(fd)))
    renamed = []
    replace = os.replace

    def count(source, target):
        renamed.append((Path(target).name, len(synced)))
        replace(source, target)

    monkeypatch.setattr(os, "replace", count)
    recording.write_json(tmp_path / "meta.json", {})
    assert renamed == [("meta.json", 1)]
    assert len(synced) == 2  # the folder too


def test_scratch_files_of_dead_writers_are_removed(tmp_path):
    dead = tmp_path / ".a.lser.0123456789abcdef"
    dead.write_bytes(b"half")
    other = tmp_path / ".b.lser.0123456789abcdef"
    other.write_bytes(b"half")
    alive = tmp_path / ".a.lser.fedcba9876543210"
    with alive.open("wb") as file:
        assert locks.try_lock(file)
        files.save(tmp_path / "a.lser", "kind", files.State({}, {}))
        assert not dead.exists()
        assert alive.exists()
        assert other.exists()  # it belongs to another file
    files.sweep(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.lser"]


def test_saving_keeps_links_and_modes_and_names_the_path_asked_for(tmp_path):
    target, link = tmp_path / "target.lser", tmp_path / "link.lser"
    target.write_bytes(b"")
    target.chmod(0o600)
    link.symlink_to(target)
    files.save(link, "kind", files.State({"a": 1}, {}))
    assert link.is_symlink()
    assert files.load(target)[1].config == {"a": 1}
    assert target.stat().st_mode & 0o777 == 0o600
    with pytest.raises(OSError, match="no-folder/m.lser"):
        files.save(tmp_path / "no-folder" / "m.lser", "kind", files.State({}, {}))


STUDY = """
import sys
from pathlib import Path
from test_run import small
from lser.cli.study import run_jobs
from lser.experiments.study import Processes, job_for
if __name__ == "__main__":
    long = [small(seed=s, sessions=50000, study="s") for s in (0, 1)]
    jobs = [job_for(each, Path(sys.argv[1]), "") for each in long]
    try:
        sys.exit(run_jobs(jobs, Processes(2)))
    except KeyboardInterrupt:
        sys.exit(130)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_their_study(tmp_path, number):
    script = tmp_path / "study.py"
    script.write_text(STUDY)
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    env["PYTHONPATH"] = os.pathsep.join([*sys.path, str(Path(__file__).parent)])
    out = tmp_path / "out"
    with subprocess.Popen([sys.executable, str(script), str(out)], env=env) as process:
        until(lambda: len(list(out.rglob("progress.json"))) == 2)
        process.send_signal(number)
        code = process.wait(timeout=LIMIT)
    assert code == (130 if number == signal.SIGTERM else -9)
    folders = [path.parent for path in out.rglob("experiment.json")]
    until(lambda: not any(owned(folder) for folder in folders))
    for folder in folders:
        assert records.load(folder).status == "stopped"
        assert list((folder / CHECKPOINTS).glob("*.lser"))
