"""Wall time of a study on Ray beside the same study on processes, on the same cores.

``python benchmarks/ray_study.py`` prints a table and writes `results/speed_ray.json`. A round is as
many runs as cores on each engine, one engine after the other, in turns of changing order; the
cluster is this machine's, with as many cores, and starts once (its start is told apart). Records of
both must be equal byte for byte. Asked for: at most 1.1x the wall time, for runs of minutes.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import ray

from lser.experiments import records
from lser.experiments.presets import earlier_bazaar, lasting, preset
from lser.experiments.study import Job, Map, Processes, job_for
from lser.ray import RayRuns

ROOT = Path(__file__).resolve().parents[1]
TARGET = 1.1
KEPT = ("experiment.json", "curve.jsonl", "final.json", "agent/000000000000.lser")


def jobs(sessions: int, cores: int, first: int, root: Path) -> list[Job]:
    base = earlier_bazaar(lasting(preset("bazaar", "lser", "ddpg"), sessions))
    return [job_for(replace(base, seed=first + n), root, "") for n in range(cores)]


def seconds(engine: Map, work: list[Job]) -> float:
    began = time.perf_counter()
    done = list(engine.run(work, started=lambda _: None))
    assert all(one.ok for one in done)
    return time.perf_counter() - began


def measure(rounds: int, sessions: int, cores: int, root: Path) -> dict[str, Any]:
    engines: dict[str, Map] = {"processes": Processes(cores), "ray": RayRuns(workers=cores)}
    found: dict[str, list[float]] = {name: [] for name in engines}
    cpu: dict[str, list[float]] = {name: [] for name in engines}
    for number in range(rounds):
        for name in list(engines)[:: 1 if number % 2 == 0 else -1]:
            work = jobs(sessions, cores, number * cores, root / name)
            found[name].append(seconds(engines[name], work))
            finals = [records.load(job.folder).final or {} for job in work]
            cpu[name].append(sum(final["times"]["cpu"] for final in finals))
            print(f"round {number + 1}: {name} {found[name][-1]:.1f} s", file=sys.stderr)
    for path in (root / "ray").rglob("final.json"):
        other = root / "processes" / path.parent.relative_to(root / "ray")
        for name in KEPT:
            assert (path.parent / name).read_bytes() == (other / name).read_bytes(), path
    return {"wall": found, "cpu": cpu}


def ratio(found: dict[str, list[float]]) -> float:
    pairs = zip(found["ray"], found["processes"], strict=True)
    return statistics.median(ours / theirs for ours, theirs in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--sessions", type=int, default=8_000)
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "speed_ray.json")
    options = parser.parse_args()
    began = time.perf_counter()
    ray.init(num_cpus=options.cores, include_dashboard=False, log_to_driver=False)
    start = time.perf_counter() - began
    with tempfile.TemporaryDirectory() as folder:
        found = measure(options.rounds, options.sessions, options.cores, Path(folder))
    ray.shutdown()
    wall, cpu = ratio(found["wall"]), ratio(found["cpu"])
    row = {
        "cores": options.cores,
        "sessions": options.sessions,
        "seconds": found["wall"],
        "cpu_seconds": found["cpu"],
        "start_seconds": start,
        "wall_ratio": wall,
        "wall_ratio_met": wall <= TARGET,
        "cpu_ratio": cpu,
    }
    options.out.write_text(json.dumps({"study": row}, indent=1) + "\n")
    print(f"Ray beside processes: {wall:.2f}x the wall time, {cpu:.2f}x the processor time")


if __name__ == "__main__":
    main()
