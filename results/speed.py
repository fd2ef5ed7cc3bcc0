"""The benchmarks' last committed runs as rows of a table."""

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent


def speed() -> str:
    """Every target of the benchmarks as measured in their last committed run."""
    lines = ["| what | measured | asked for |", "|---|---|---|"]
    for path in sorted(RESULTS.glob("speed_*.json")):
        lines += speed_rows(path.stem.removeprefix("speed_"), json.loads(path.read_text()))
    return "\n".join(lines)


SHORT = (  # of the rows below, those that the front page shows
    "push 64 / cpprb PER",
    "push 64 / Tianshou",
    "LSER greedy sample / ",
    "PER sample + update",
    "updates/s: lser beside sb3",
    "training steps/s beside Stable-Baselines3",
    "training steps/s with LSER in Stable-Baselines3",
    "1,024 users: steps/s",
)


def short_speed() -> str:
    """The front page's choice of `speed`, and every target that was missed."""
    head, rule, *rows = speed().splitlines()
    kept = [row for row in rows if "(missed)" in row or any(name in row for name in SHORT)]
    return "\n".join([head, rule, *kept])


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
    raise ValueError(f"no rows for benchmark {name!r}")
