"""The benchmarks' last committed runs as rows of a table."""

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent
FLEET = {"lser": 60_000, "uniform": 60_000, "mix": 40_000}  # agent-steps/s asked for


def speed() -> str:
    """Every target of the benchmarks as measured in their last committed run."""
    lines = ["| what | measured | asked for |", "|---|---|---|"]
    for path in sorted(RESULTS.glob("speed_*.json")):
        lines += speed_rows(path.stem.removeprefix("speed_"), json.loads(path.read_text()))
    return "\n".join(lines)


def short_speed() -> str:
    """Two rows for the front page: training, and simulating."""
    training = json.loads((RESULTS / "speed_training.json").read_text())["rows"]
    eight = next(row["speed"] for row in training if row["users"] == 8)
    simulators = json.loads((RESULTS / "speed_simulators.json").read_text())["rows"]
    ratios = [row["vector_ratio"] for row in simulators]
    return "\n".join(
        [
            "| what | measured |",
            "|---|---|",
            f"| training steps/s beside Stable-Baselines3, 8 users | {eight:.2f}x |",
            "| simulated steps/s beside the original simulators, 1,024 users "
            f"| {min(ratios):.3g}x to {max(ratios):.3g}x |",
        ]
    )


def speed_rows(name: str, data: Any) -> list[str]:
    """The rows of one benchmark's file."""
    match name:
        case "simulators":
            return [
                f"| {row['name']}, {kind}: steps/s beside the original "
                f"| {row[f'{key}_ratio']:.3g}x | {row[f'{key}_target']:.0f}x |"
                for row in data["rows"]
                for key, kind in (("vector", "1,024 users"), ("single", "one user"))
            ]
        case "replay":
            return [
                f"| {what} | {value:.3g}{'' if good else ' (missed)'} | {relation} {bound:g} |"
                for what, value, relation, bound, good in data["targets"]
                if value is not None
            ] + [
                "| slowdown of push 64 with rows of 8 + 2 numbers, where the index weighs most "
                f"/ ring's | {data['slowdown_of_narrow_rows']:.3g} | |"
            ]
        case "learner":
            return [
                f"| updates/s: lser beside {row['learner']}, {row['algorithm']} "
                f"| {row['lser_is_faster_by']:.2f}x | {row['target']:.2f}x |"
                for row in data
                if row.get("target") is not None
            ]
        case "training":
            return [
                row_text
                for row in data["rows"]
                for row_text in (
                    f"| training steps/s beside Stable-Baselines3, {row['users']} users "
                    f"| {row['speed']:.2f}x | 2x |",
                    f"| time beside the bare updates, {row['users']} users "
                    f"| {row['overhead']:.2f}x | 1.2x at most |",
                )
            ]
        case "adapters":
            return [
                f"| training steps/s with LSER in {library}, beside its own buffer "
                f"| {row['ratio']:.2f}x | {row['target']:.1f}x |"
                for library, row in data.items()
                if "ratio" in row
            ]
        case "rllib":
            return [
                "| environment steps by processor time of RLlib's SAC with LSER, beside its "
                f"EpisodeReplayBuffer | {data['buffers']['LSER']['ratio']:.2f}x"
                f"{'' if data['met'] else ' (missed)'} | {data['target']}x |"
            ]
        case "shards":
            return shard_rows(data)
        case "ray":
            found = data["study"]
            return [
                f"| wall time of a study on Ray beside processes, {found['cores']} cores "
                f"| {found['wall_ratio']:.2f}x{'' if found['wall_ratio_met'] else ' (missed)'} "
                "| 1.1x at most |"
            ]
        case "feeders":
            missed = "" if data["wall_ratio_met"] else " (missed)"
            return [
                f"| updates/s of a learner that is fed by {data['feeders']}, beside alone, "
                f"{data['cores']} cores | {data['wall_ratio']:.2f}x{missed}; "
                f"{data['cpu_ratio']:.2f}x by its own processor time | .9x |"
            ]
        case "fleet":
            device, cpu = data["device"], data["cpu"]
            return [
                f"| agent-steps/s of {row['runs']} runs of VirtualTaobao on one "
                f"{device['machine']['device']}, {name} | {row['agent_steps_per_s']:,.0f}, "
                f"{row['times_one_process']:.0f}x one process{'' if row['passed'] else ' (missed)'}"
                f" | {FLEET[name]:,} |"
                for name, row in device["fleets"].items()
            ] + [
                "| steps/s per core of a fleet on the CPU, beside one process per core "
                f"| {cpu['fleet_is_faster_by']:.2f}x (missed) | 1.5x |"
            ]
    raise ValueError(f"no rows for benchmark {name!r}")


def shard_rows(data: Any) -> list[str]:
    """The rows of the sharded memory: beside dm-reverb, and its balance."""
    asked, ratios = data["targets"], data["speed"]["ratios"]
    names = {"push": "transitions stored per second", "sample": "batches of 128 drawn ahead"}
    rows = [
        f"| {names[what]}, two shards beside dm-reverb | {ratios[what]:.2f}x"
        f"{'' if ratios[what] >= asked[what] else ' (missed)'} | {asked[what]:g}x |"
        for what in names
    ]
    for label, row in data["balance"].items():
        load, most = row["busiest"]["chosen 8"], asked["busiest"]
        bound = f"{most:g} at most" if "standardised" in label else ""
        missed = " (missed)" if bound and load > most else ""
        rows.append(
            f"| busiest of 8 shards beside the mean, {label} | {load:.2f}{missed} | {bound} |"
        )
    return rows
