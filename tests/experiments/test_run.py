"""Runs: the same record every time, interrupted or not."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from lser.catalogue import MEMORIES
from lser.experiments import records
from lser.experiments.experiment import Experiment, from_json, to_json
from lser.experiments.preflight import check_memory
from lser.experiments.presets import preset
from lser.experiments.run import CHECKPOINTS, Run, run
from lser.training import checkpoint
from waiting import LIMIT, until


def small(memory="lser", **changes):
    base = preset("bazaar", memory, "ddpg", scale="quick")
    sizes = {"sessions": 60, "evaluate_every": 20, "evaluate_sessions": 20, "final_sessions": 40}
    return replace(base, users=4, batch_size=16, capacity=500, **{**sizes, **changes})


def outcome(folder):
    """What must be equal: the curve and the final evaluation, byte for byte."""
    return (folder / "curve.jsonl").read_bytes(), (folder / "final.json").read_bytes()


@pytest.mark.parametrize("memory", MEMORIES)
def test_the_same_experiment_leaves_the_same_record(memory, tmp_path):
    for name in ("a", "b"):
        run(small(memory), tmp_path / name)
    assert outcome(tmp_path / "a") == outcome(tmp_path / "b")
    record = records.load(tmp_path / "a")
    assert record.status == "done"
    assert record.curve[0]["sessions"] == 0
    assert record.final["sessions"] >= 60
    assert set(record.final["times"]) == {"env", "replay", "learn", "evaluate", "wall", "cpu"}


class Stop(Exception):
    pass


@pytest.mark.parametrize("memory", MEMORIES)
def test_a_checkpointed_run_continues_bit_for_bit(memory, tmp_path):
    experiment = small(memory)
    run(experiment, tmp_path / "whole")
    interrupted = Run(experiment, tmp_path / "parts")

    def stop_halfway(status):
        if status.step.sessions >= 33:
            interrupted.checkpoint()
            raise Stop

    with pytest.raises(Stop):
        interrupted.go(stop_halfway)
    assert records.load(tmp_path / "parts").status == "failed"
    run(experiment, tmp_path / "parts")
    assert outcome(tmp_path / "parts") == outcome(tmp_path / "whole")
    assert not list((tmp_path / "parts" / CHECKPOINTS).glob("*.lser"))


def test_two_checkpoints_are_kept_and_a_damaged_one_is_passed_over(tmp_path, caplog):
    experiment = small()
    run(experiment, tmp_path / "whole")
    interrupted = Run(experiment, tmp_path / "parts", checkpoint_seconds=0)

    def stop_late(status):
        if status.step.sessions >= 50:
            raise Stop

    with pytest.raises(Stop):
        interrupted.go(stop_late)
    kept = sorted((tmp_path / "parts" / CHECKPOINTS).glob("*.lser"))
    assert len(kept) == 2
    data = bytearray(kept[-1].read_bytes())
    data[len(data) // 2] ^= 1
    kept[-1].write_bytes(data)
    run(experiment, tmp_path / "parts")
    assert "cannot be used" in caplog.text
    assert outcome(tmp_path / "parts") == outcome(tmp_path / "whole")


def test_a_record_of_another_experiment_is_not_overwritten(tmp_path):
    run(small(sessions=5), tmp_path)
    with pytest.raises(ValueError, match="another experiment"):
        run(small(sessions=6), tmp_path)


def test_the_intervention_stops_exploration_for_good(tmp_path):
    under_way = Run(small(intervention=-1.0), tmp_path)
    under_way.go()
    assert under_way.built.agent.state_dict()["exploring"] is False
    assert under_way.built.replay.greedy == 1.0


def test_a_failed_run_keeps_its_traceback(tmp_path):
    under_way = Run(small(), tmp_path)

    def broken(status):
        raise RuntimeError("out of ideas")

    with pytest.raises(RuntimeError):
        under_way.go(broken)
    record = records.load(tmp_path)
    assert record.status == "failed"
    assert "out of ideas" in record.meta["error"]


def test_a_memory_that_does_not_fit_is_refused_before_training():
    with pytest.raises(MemoryError, match=r"needs .* GiB .* available"):
        check_memory(10**13, 91, 27)


def test_a_checkpoint_restores_what_went_in(tmp_path):
    import numpy as np
    import torch

    tree = {"a": [1, 2.5, None, "x", True], "b": {3: torch.arange(4)}, "c": np.eye(2), "d": 2**70}
    path = checkpoint.save(tmp_path, 1, tree)
    back = checkpoint.load(path)
    assert back["a"] == tree["a"]
    assert np.array_equal(back["b"][3], tree["b"][3])  # tensors come back as arrays
    assert np.array_equal(back["c"], tree["c"])
    assert back["d"] == 2**70


KILLS = 8  # make drill does more
WORKER = """
import json, sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from lser.experiments.experiment import from_json
from lser.experiments.run import run
experiment = from_json(json.loads(sys.argv[1]))
run(experiment, Path(sys.argv[2]), checkpoint_seconds=0.05)
"""


@pytest.mark.slow
def test_a_run_killed_at_random_moments_leaves_the_same_record(tmp_path):
    experiment = small(sessions=1_500, evaluate_every=500)
    run(experiment, tmp_path / "whole")
    plain = json.dumps(to_json(experiment))
    command = [sys.executable, "-c", WORKER, plain, str(tmp_path / "killed")]
    chance = random.Random(0)
    kills = 0
    while True:
        with subprocess.Popen(command) as process:
            if kills == KILLS:
                assert process.wait(timeout=300) == 0
                break
            _wait_for_progress(process, tmp_path / "killed")
            time.sleep(chance.uniform(0, 0.3))
            process.send_signal(signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL, f"it ended after {kills} kills: too short"
            kills += 1
    assert outcome(tmp_path / "killed") == outcome(tmp_path / "whole")


def _marks(folder):
    return sorted(path.name for path in (folder / CHECKPOINTS).glob("0*.lser"))


def _wait_for_progress(process, folder):
    """Until this process wrote a checkpoint of its own, so that every life makes headway."""
    before = _marks(folder)
    until(lambda: _marks(folder) != before or process.poll() is not None, "a checkpoint", 0.01)


def test_ctrl_c_stops_cleanly_with_a_checkpoint_and_says_how_to_resume(tmp_path):
    experiment = small(sessions=100_000)
    command = [sys.executable, "-m", "lser", "train", "bazaar", "lser", "--out", str(tmp_path)]
    command += ["--users", "4", "--batch-size", "16", "--capacity", "500"]
    process = subprocess.Popen(
        [*command, "--sessions", str(experiment.sessions)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    until(lambda: list(tmp_path.rglob("progress.json")))
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == 130
    assert "lser resume" in errors
    folder = next(tmp_path.rglob("experiment.json")).parent
    assert records.load(folder).status == "stopped"
    assert list((folder / CHECKPOINTS).glob("*.lser"))
    assert isinstance(from_json(records.load(folder).experiment), Experiment)
