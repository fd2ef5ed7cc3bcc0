"""Steps per second beside the original simulators, one core each, ratios in one run.

``python benchmarks/simulators.py`` prints a table and writes JSON. The originals run in
.venv-parity (made when missing); VirtualTaobao's stand-in where its package is not installed. Ours
and theirs take turns, timed by their own processor time, and a ratio is the median over the turns.
Steps of RecoGym are events, product views included, on both sides.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MODULES = {
    "lser/VirtualTaobao-v0": "virtual_taobao",
    "lser/InterestEvolution-v0": "interest_evolution",
    "lser/LongTermSatisfaction-v0": "long_term_satisfaction",
    "lser/RecoGym-v0": "recogym",
}
USERS = 1024
TARGETS = {"vector": 100.0, "single": 2.0}
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)


def vector_rate(name: str, seconds: float) -> float:
    import gymnasium as gym

    import lser  # noqa: F401  registers the simulators

    env = gym.make_vec(name, num_envs=USERS)
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(8)]
    env.reset(seed=0)
    for action in actions:
        env.step(action)  # compiles what is compiled
    events, turn, start = 0, 0, time.process_time()
    while time.process_time() - start < seconds:
        info = env.step(actions[turn % 8])[4]
        events += USERS + (int(info["views"].sum()) if "views" in info else 0)
        turn += 1
    return events / (time.process_time() - start)


def single_rate(name: str, seconds: float) -> float:
    import gymnasium as gym

    import lser  # noqa: F401  registers the simulators

    env = gym.make(name).unwrapped
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(256)]
    env.reset(seed=0)
    env.step(actions[0])
    env.reset()
    events, turn, start = 0, 0, time.process_time()
    while time.process_time() - start < seconds:
        _, _, terminated, _, info = env.step(actions[turn % 256])
        events += 1 + int(info.get("views", 0))
        turn += 1
        if terminated:
            env.reset()
    return events / (time.process_time() - start)


def in_process(command: list[str]) -> float:
    """The number that `command` prints, run on one core with one thread."""
    pin = ["taskset", "-c", "0"] if shutil.which("taskset") else []
    found = subprocess.run(
        [*pin, *command],
        cwd=ROOT,
        env=os.environ
        | ONE_THREAD
        | {"PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return float(found.stdout.split()[-1])


def measure(name: str, interpreter: Path, seconds: float, turns: int) -> dict[str, Any]:
    """Rates and ratios of one simulator over turns of original, vector and single."""
    rates: dict[str, list[float]] = {"original": [], "vector": [], "single": []}
    for _ in range(turns):
        original = [str(interpreter), "-m", "parity.rates", MODULES[name], str(seconds)]
        rates["original"].append(in_process(original))
        for kind in ("vector", "single"):
            ours = [sys.executable, __file__, "--rate", kind, name, "--seconds", str(seconds)]
            rates[kind].append(in_process(ours))
    row: dict[str, Any] = {"name": name, "rates": rates}
    for kind, target in TARGETS.items():
        pairs = zip(rates[kind], rates["original"], strict=True)
        row[f"{kind}_ratio"] = statistics.median(ours / theirs for ours, theirs in pairs)
        row[f"{kind}_target"] = target
        row[f"{kind}_met"] = row[f"{kind}_ratio"] >= target
    return row


def table(rows: list[dict[str, Any]]) -> str:
    """The results as Markdown."""
    lines = [
        f"| simulator | original steps/s | {USERS} users | >= 100x | single | >= 2x |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        middle = {kind: statistics.median(values) for kind, values in row["rates"].items()}
        verdict = {kind: "met" if row[f"{kind}_met"] else "MISSED" for kind in TARGETS}
        lines.append(
            f"| {row['name']} | {middle['original']:,.0f} "
            f"| {middle['vector']:,.0f} | {row['vector_ratio']:.0f}x {verdict['vector']} "
            f"| {middle['single']:,.0f} | {row['single_ratio']:.1f}x {verdict['single']} |"
        )
    return "\n".join(lines)


def main() -> int:
    """Measure, print, write; the exit code says whether every target is met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    parser.add_argument("--turns", type=int, default=3, help="ours and theirs alternate so often")
    parser.add_argument("--only", choices=MODULES.values(), action="append", help="simulators")
    parser.add_argument("--output", type=Path, default=ROOT / "results" / "speed_simulators.json")
    parser.add_argument("--rate", nargs=2, metavar=("KIND", "NAME"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rate:
        kind, name = options.rate
        rate = {"vector": vector_rate, "single": single_rate}[kind](name, options.seconds)
        sys.stdout.write(f"{rate}\n")
        return 0
    sys.path.insert(0, str(ROOT))
    from parity.__main__ import environment

    from lser.simulators.virtual_taobao.weights import WeightsError, find_weights

    interpreter = environment()
    names = [
        name for name, module in MODULES.items() if module in (options.only or MODULES.values())
    ]
    try:
        find_weights()
    except WeightsError as error:
        names = [name for name in names if MODULES[name] != "virtual_taobao"]
        sys.stderr.write(f"left out: VirtualTaobao ({error})\n")
    rows = []
    for name in names:
        # VirtualTaobao's original needs torch, which is here and not there
        python = Path(sys.executable) if MODULES[name] == "virtual_taobao" else interpreter
        rows.append(measure(name, python, options.seconds, options.turns))
    sys.stdout.write(table(rows) + "\n")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps({"users": USERS, "rows": rows}, indent=1) + "\n")
    return int(not all(row[f"{kind}_met"] for row in rows for kind in TARGETS))


if __name__ == "__main__":
    sys.exit(main())
