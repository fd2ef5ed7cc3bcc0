"""Studies on a real cluster of three nodes: the same records, whatever dies."""

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import faults
import pytest
from clusters import STORE, cluster, within

from lser.cli.engines import Place
from lser.experiments import records
from lser.experiments.owner import owned
from lser.experiments.presets import preset
from lser.experiments.run import Run
from lser.experiments.study import Processes, job_for
from lser.ray import RayFleets, RayRuns
from lser.ray.fleets import crews_beside
from lser.ray.map import Demand
from waiting import LIMIT, until

HERE = Path(__file__).parent
KEPT = ("experiment.json", "curve.jsonl", "final.json", "agent/000000000000.lser")
SIZES = {"evaluate_every": 100, "evaluate_sessions": 20, "final_sessions": 40}


def small(memory="lser", seed=0, sessions=600, **changes):
    base = preset("bazaar", memory, "ddpg", scale="quick")
    sizes = {**SIZES, "users": 4, "batch_size": 32, "capacity": 5_000}
    return replace(base, seed=seed, sessions=sessions, label=memory, **{**sizes, **changes})


def faulty(kind, mark, **changes):
    return replace(small("uniform"), memory=kind.Params(mark=str(mark), **changes), label="faulty")


def jobs_of(runs, root):
    return [job_for(run, root, "a test") for run in runs]


def carry_out(engine, jobs, then=None):
    """Every job's outcome by its folder; `then` is called when each has started."""
    began = []

    def started(job):
        began.append(job)
        if then is not None and len(began) == len(jobs):
            then()

    done = {done.job.folder: done.ok for done in engine.run(jobs, started=started)}
    assert sorted(job.folder for job in began) == sorted(done)  # each started once
    return done


def content(job):
    return {name: (Path(job.folder) / name).read_bytes() for name in KEPT}


@pytest.fixture(scope="module")
def three():
    """Three nodes of a core each, whose workers find this folder's modules."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([*filter(None, sys.path), str(HERE)])
    try:
        with cluster(3) as made:
            yield made
    finally:
        os.environ.pop("PYTHONPATH")
        if before is not None:
            os.environ["PYTHONPATH"] = before


@pytest.fixture
def limit():
    with within(400):
        yield


@pytest.mark.slow
def test_an_error_of_a_run_is_told_and_not_retried(three, limit, tmp_path):
    mark = tmp_path / "mark"
    bad, good = jobs_of([faulty(faults.Raises, mark), small(sessions=30)], tmp_path)
    assert carry_out(RayRuns(), [bad, good]) == {bad.folder: False, good.folder: True}
    record = records.load(bad.folder)
    assert record.status == "failed"
    assert "meant to fail" in record.meta["error"]
    assert len(mark.read_text()) <= 2  # once in the run, and once when its kernels were warmed
    assert not owned(Path(bad.folder))


@pytest.mark.slow
def test_a_run_whose_worker_dies_is_tried_again_but_not_for_ever(three, limit, tmp_path):
    once, always = tmp_path / "once", tmp_path / "always"
    runs = [faulty(faults.Dies, once), faulty(faults.Dies, always, times=1_000)]
    first, second = jobs_of([replace(run, sessions=30) for run in runs], tmp_path)
    engine = RayRuns(retries=1)
    assert carry_out(engine, [first, second]) == {first.folder: True, second.folder: False}
    assert once.read_text() == "x"
    assert always.read_text() == "xx"
    assert "its worker died 2 times" in records.load(second.folder).meta["error"]


SCRIPT = """
import signal
import sys
from pathlib import Path
from test_map import small
from lser.cli.jobs import run_jobs
from lser.experiments.study import job_for
from lser.ray import RayRuns
signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell ignore it
jobs = [job_for(small(seed=s, sessions=100_000), Path(sys.argv[2]), "") for s in range(4)]
try:
    sys.exit(run_jobs(jobs, RayRuns(sys.argv[1], workers=2)))
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_study_leaves_checkpoints_to_go_on_from(three, limit, tmp_path, number):
    script = tmp_path / "study.py"
    script.write_text(SCRIPT)
    out = tmp_path / "out"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([*filter(None, sys.path), str(HERE)])}
    command = [sys.executable, str(script), three.address, str(out)]
    with subprocess.Popen(command, env=env, start_new_session=True) as process:
        try:
            until(lambda: len(list(out.rglob("progress.json"))) == 2)
            os.killpg(process.pid, number)  # as a terminal does it
            assert process.wait(timeout=LIMIT) == 130
        finally:
            process.kill()
    stopped = [path.parent for path in out.rglob("curve.jsonl")]
    assert len(stopped) == 2
    for folder in stopped:
        assert records.load(folder).status == "stopped"
        assert list((folder / "checkpoints").glob("*.lser"))
        assert not owned(folder)
    run = small(seed=records.load(stopped[0]).seed, sessions=100_000)
    assert Run(run, stopped[0]).progress.sessions > 0  # it goes on from there


@pytest.mark.slow
def test_a_node_that_dies_costs_no_record(three, limit, tmp_path):
    runs = [small("lser", 0, 1_800), small("lser", 1, 1_800), small("per", 0, 1_800)]
    jobs, local = jobs_of(runs, tmp_path / "ray"), jobs_of(runs, tmp_path / "processes")

    def kill():
        until(lambda: all(any(Path(job.folder).rglob("*.lser")) for job in jobs))
        three.remove_node(three.workers.pop(), allow_graceful=False)  # each node has a run

    killer = threading.Thread(target=kill)
    killer.start()
    assert all(carry_out(RayRuns(checkpoint_seconds=0.5), jobs).values())
    killer.join()
    assert all(carry_out(Processes(2), local).values())
    for one, other in zip(jobs, local, strict=True):
        assert content(one) == content(other)
    parts = [len(records.load(job.folder).meta["parts"]) for job in jobs]
    assert max(parts) == 2, parts  # somebody went on from a checkpoint that had come back
    assert not any(list(Path(job.folder).glob("checkpoints/*")) for job in jobs)


@pytest.mark.slow
def test_fleets_share_a_gpu_and_leave_the_records_of_their_runs(three, limit, tmp_path):
    """The GPU is one in Ray's books alone; the fleets it lets in compute on the CPU."""
    runs = [small(seed=seed, sessions=40) for seed in range(4)]
    fleets = RayFleets(gpus=0.5, device="cpu", size=2)
    jobs, alone = jobs_of(runs, tmp_path / "fleet"), jobs_of(runs, tmp_path / "alone")
    common = {"node_ip_address": "127.0.0.2", "object_store_memory": STORE}
    larger = three.add_node(num_cpus=4, num_gpus=1, **common)
    began = []
    engine = fleets.run(jobs, started=lambda job: began.append(job.folder))
    first = next(engine)
    assert len(began) == 4  # both fleets had begun before one was done: each has half a GPU
    assert all(done.ok for done in [first, *engine])
    three.remove_node(larger)  # other tests count their nodes
    assert all(carry_out(Processes(1), alone).values())
    for one, other in zip(jobs, alone, strict=True):
        assert content(one) == content(other)


def test_a_task_takes_its_part_of_what_the_cluster_has():
    class Ray:
        @staticmethod
        def cluster_resources():
            return {"CPU": 16.0, "GPU": 2.0}

    assert Demand({"CPU": 1.0}).places(Ray) == 17  # one waits at the cluster
    assert Demand({"CPU": 1.0}, most=3).places(Ray) == 3
    assert Demand({"CPU": 4.0, "GPU": 0.25}).places(Ray) == 5
    assert Demand({"CPU": 4.0, "GPU": 1.0}).options()["num_gpus"] == 1.0


def test_the_cores_of_a_node_are_shared_out_by_its_gpus():
    node = {"Alive": True, "Resources": {"CPU": 16.0, "GPU": 2.0}}
    assert crews_beside(1.0, [node]) == 7
    assert crews_beside(0.5, [node]) == 3
    assert crews_beside(0, [{"Alive": True, "Resources": {"CPU": 4.0}}]) == 3
    assert crews_beside(1.0, [{"Alive": False, "Resources": {"CPU": 4.0, "GPU": 1.0}}]) == 1


def test_numbers_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="workers must not be negative, got -1"):
        RayRuns(workers=-1)
    with pytest.raises(ValueError, match="checkpoint_seconds"):
        RayRuns(checkpoint_seconds=float("nan"))
    with pytest.raises(ValueError, match="gpus"):
        RayFleets(gpus=-1.0)
    with pytest.raises(ValueError, match="--address is for --engine ray"):
        Place("processes", address="somewhere:6379")


def test_without_ray_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match="pip install 'ray"):
        Place("ray").map()
