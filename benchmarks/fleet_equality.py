"""Whether fleets end where single runs do: final scores of both engines, seed by seed.

``python benchmarks/fleet_equality.py --device cuda`` runs 24 seeds of LSER, uniform and PER on
Bazaar, once as single processes and once as a fleet, and writes ``results/fleet_equality.json``:
both sets of final scores, their means, the p-values of Mann-Whitney and Kolmogorov-Smirnov tests,
and the mean difference with its 95 % interval. It exits with 1 where a test finds a difference
(Holm over all tests, at .05) or where the first evaluations, before rounding can tip a click,
differ. On the CPU the two engines leave the same bytes, which tests hold; on a device rounding
differs.

``--fleet PACKED --processes FOLDER`` compares records that are there instead, of equal experiments
on both engines, and writes them beside under ``again``.
"""

import argparse
import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

ROOT = Path(__file__).resolve().parents[1]
MEMORIES = ("lser", "uniform", "per")


def jobs(folder: Path, seeds: int, sessions: int) -> list[Any]:
    from lser.experiments.presets import earlier_bazaar, lasting, preset
    from lser.experiments.study import job_for

    runs = [
        replace(earlier_bazaar(lasting(preset("bazaar", memory, "ddpg"), sessions)), label=memory)
        for memory in MEMORIES
    ]
    return [
        job_for(replace(run, seed=seed), folder, "fleet equality")
        for run in runs
        for seed in range(500, 500 + seeds)
    ]


def scores(engine: Any, work: list[Any]) -> dict[str, list[tuple[float, float]]]:
    """Score of the first evaluation and of the last, by memory."""
    from lser.experiments import records

    ends = engine.run(work, started=lambda _: None)
    failed = [done.job.folder for done in ends if not done.ok]
    if failed:
        raise SystemExit(f"runs failed: {failed}")
    found: dict[str, list[tuple[float, float]]] = {memory: [] for memory in MEMORIES}
    for job in work:
        record = records.load(Path(job.folder))
        assert record.final is not None
        line = (float(record.curve[0]["metric"]), float(record.final["metric"]))
        found[str(job.experiment["label"])].append(line)
    return found


def compare(one: list[float], other: list[float]) -> dict[str, Any]:
    gap = float(np.mean(other) - np.mean(one))
    spread = float(np.sqrt(np.var(one, ddof=1) / len(one) + np.var(other, ddof=1) / len(other)))
    return {
        "processes": one,
        "fleet": other,
        "mean_processes": float(np.mean(one)),
        "mean_fleet": float(np.mean(other)),
        "difference": gap,
        "interval": [gap - 1.96 * spread, gap + 1.96 * spread],
        "mann_whitney_p": float(stats.mannwhitneyu(one, other).pvalue),
        "kolmogorov_smirnov_p": float(stats.ks_2samp(one, other).pvalue),
    }


def recorded(folder: Path) -> dict[str, Any]:
    """The runs under a folder or in a packed file that ended, by what was to be run."""
    from lser.experiments import records

    ended = [run for run in records.find(folder) if run.status == "done" and run.final]
    return {json.dumps(run.experiment, sort_keys=True): run for run in ended}


def again(fleet: Path, processes: Path) -> tuple[dict[str, Any], bool]:
    """What records of equal experiments on both engines say, by memory."""
    theirs, ours = recorded(fleet), recorded(processes)
    common = sorted(theirs.keys() & ours.keys())
    found: dict[str, dict[str, list[tuple[float, float]]]] = {"processes": {}, "fleet": {}}
    for name, runs in (("processes", ours), ("fleet", theirs)):
        for key in common:
            run = runs[key]
            memory = str(run.label).split(",")[0]
            line = (float(run.curve[0]["metric"]), float(run.final["metric"]))
            found[name].setdefault(memory, []).append(line)
    rows, first, smallest = judged(found)
    one = theirs[common[0]]
    result = {
        "device": one.meta["engine"],
        "records": fleet.name,
        "runs": len(common),
        "sessions": one.experiment["sessions"],
        "memories": rows,
        "first_evaluations_equal": first,
        "smallest_p_after_holm": smallest,
        "equal": first and smallest > 0.05,
    }
    return result, bool(result["equal"])


def judged(
    found: dict[str, dict[str, list[tuple[float, float]]]],
) -> tuple[dict[str, Any], bool, float]:
    """Each memory's scores compared, whether all first ones agree, the smallest p after Holm."""
    rows, first = {}, True
    for memory in found["fleet"]:
        one, other = (np.array(found[name][memory]) for name in ("processes", "fleet"))
        first = first and bool(np.allclose(one[:, 0], other[:, 0], atol=1e-6))
        rows[memory] = compare(one[:, 1].tolist(), other[:, 1].tolist())
    tests = [row[t] for row in rows.values() for t in ("mann_whitney_p", "kolmogorov_smirnov_p")]
    return rows, first, min(1.0, len(tests) * min(tests))


def main() -> int:
    from lser.experiments.study import Processes
    from lser.fleet.map import Fleets
    from lser.fleet.run import device_name

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seeds", type=int, default=24)
    parser.add_argument("--sessions", type=int, default=300)
    parser.add_argument("--output", type=Path, default=ROOT / "results" / "fleet_equality.json")
    parser.add_argument("--fleet", type=Path, help="records of a fleet, a folder or a packed file")
    parser.add_argument("--processes", type=Path, help="records of the same as single processes")
    options = parser.parse_args()
    kept = json.loads(options.output.read_text()) if options.output.exists() else {}
    if options.fleet and options.processes:
        kept["again"], equal = again(options.fleet, options.processes)
        said = kept["again"]
    else:
        with tempfile.TemporaryDirectory() as folder:
            engines = {"processes": Processes(), "fleet": Fleets(options.device)}
            found = {
                name: scores(engine, jobs(Path(folder) / name, options.seeds, options.sessions))
                for name, engine in engines.items()
            }
        rows, first, smallest = judged(found)
        equal = first and smallest > 0.05
        said = {
            "device": device_name(options.device),
            "seeds": options.seeds,
            "sessions": options.sessions,
            "memories": rows,
            "first_evaluations_equal": first,
            "smallest_p_after_holm": smallest,
            "equal": equal,
        }
        kept = {**said, **({"again": kept["again"]} if "again" in kept else {})}
    options.output.write_text(json.dumps(kept, indent=1) + "\n")
    tell(said)
    return 0 if equal else 1


def tell(said: dict[str, Any]) -> None:
    """Print what was found."""
    for memory, row in said["memories"].items():
        low, high = row["interval"]
        print(
            f"{memory}: processes {row['mean_processes']:.4f}, fleet {row['mean_fleet']:.4f}, "
            f"difference {row['difference']:+.4f} [{low:+.4f}, {high:+.4f}], "
            f"p {row['mann_whitney_p']:.2f} and {row['kolmogorov_smirnov_p']:.2f}"
        )
    first, smallest = said["first_evaluations_equal"], said["smallest_p_after_holm"]
    print(f"first evaluations equal: {first}; smallest p after Holm: {smallest:.2f}")


if __name__ == "__main__":
    raise SystemExit(main())
