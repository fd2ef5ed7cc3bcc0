"""Whole training steps per second of many runs, on an accelerator or a core, and their floor.

``python benchmarks/fleet.py --device cuda`` runs fleets of VirtualTaobao on the device: LSER,
uniform and a mix of all memories, each for some seconds of whole training (users, memories,
updates), beside one run in one process on one core, in one go. It prints agent-steps per second,
how many times that is what the one process makes, how far the update alone is from its floor
(operations and bytes over rates measured on the same device), and where the time went; the numbers
go to ``results/speed_fleet.json`` with the machine's name. ``--device cpu`` is for a CPU.
"""

import argparse
import itertools
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
OBSERVATION, ACTION, BATCH, HIDDEN = 91, 27, 128, 128
MIX = ("lser", "uniform", "per", "der", "aer", "ser", "her", "reward-top", "random-code", "lser-p")
TARGETS = {"lser": 60_000, "uniform": 60_000, "mix": 40_000}  # agent-steps/s of 120 runs
TIMES_ONE_CORE = 60
SETTLED = 400  # steps of a run after which its squad's updates are compiled and captured


class Enough(Exception):
    """The time is up."""


def experiment(memory: str, seed: int, agent: str = "ddpg", generated: bool = False) -> Any:
    from lser.experiments.presets import preset

    made = preset("virtual-taobao", memory, agent, scale="paper")
    simulator = replace(made.simulator, generated=True) if generated else made.simulator
    return replace(made, simulator=simulator, seed=seed, label=memory)


def products() -> list[tuple[int, int, int]]:
    """Shapes (m, k, n) of the matrix products of one DDPG update."""
    inner = (BATCH, HIDDEN, HIDDEN)
    actor = [(BATCH, OBSERVATION, HIDDEN), inner, (BATCH, HIDDEN, ACTION)]
    critic = [(BATCH, OBSERVATION + ACTION, HIDDEN), inner, (BATCH, HIDDEN, 1)]
    down = [(BATCH, 1, HIDDEN), inner]  # through the critic to its first layer
    weights = [(k, m, n) for net in (actor, critic) for m, k, n in net]
    shapes = 2 * actor + 3 * critic + weights + 2 * down
    return [*shapes, (BATCH, HIDDEN, ACTION), (BATCH, ACTION, HIDDEN), inner]


def operations() -> float:
    """Floating-point operations of one agent's update."""
    return float(sum(2 * m * k * n for m, k, n in products()))


def bytes_moved() -> float:
    """Fewest bytes of one agent's update: its batch in; parameters, targets, moments in and out."""
    widths = (OBSERVATION, OBSERVATION + ACTION)
    outputs = (ACTION, 1)
    parameters = sum(
        (i + 1) * HIDDEN + (HIDDEN + 1) * HIDDEN + (HIDDEN + 1) * o + 4 * HIDDEN
        for i, o in zip(widths, outputs, strict=True)
    )
    batch = BATCH * (2 * (OBSERVATION + ACTION) + 3)
    return 4.0 * (batch + 2 * 4 * parameters)


def ceilings(device: str) -> dict[str, float]:
    """Measured operations per second of a large float32 product, and bytes per second of a copy."""
    import torch

    torch.set_float32_matmul_precision("highest")
    cuda = device.startswith("cuda")
    side = 8192 if cuda else 1024
    a, b = (torch.randn(side, side, device=device) for _ in range(2))
    big = torch.randn(2**28 if cuda else 2**25, device=device)
    target = torch.empty_like(big)
    product = clocked(lambda: torch.mm(a, b), device)
    copy = clocked(lambda: target.copy_(big), device)
    return {"operations_per_s": 2 * side**3 / product, "bytes_per_s": 2 * big.nbytes / copy}


def clocked(work: Any, device: str, repeats: int = 10) -> float:
    """Seconds of one call, the median of `repeats`."""
    import torch

    def settle() -> None:
        if device.startswith("cuda"):
            torch.cuda.synchronize()

    found = []
    for _ in range(repeats + 3):
        settle()
        began = time.perf_counter()
        work()
        settle()
        found.append(time.perf_counter() - began)
    return float(np.median(found[3:]))


def one_process(seconds: float, generated: bool) -> float:
    """Steps per second of one run of LSER in a process of its own, on one core."""
    code = f"from fleet import alone; print(alone({seconds}, {generated}))"
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(names, "1")}
    environment["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return float(found.stdout.splitlines()[-1])


def alone(seconds: float, generated: bool) -> float:
    """Steps per second of one run in this process, once it learns."""
    import torch

    from lser.experiments.run import Run

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        run = Run(experiment("lser", 0, generated=generated), Path(folder) / "run")
        marks: list[tuple[float, int]] = []

        def watch(status: Any) -> None:
            if status.step.updates > 100:
                marks.append((time.perf_counter(), status.step.steps))
                if marks[-1][0] - marks[0][0] > seconds:
                    raise Enough

        with suppress(Enough):
            run.go(watch)
    return (marks[-1][1] - marks[0][1]) / (marks[-1][0] - marks[0][0])


def updater(runs: int, device: str, agent: str = "ddpg", stacked: bool = True) -> Any:
    """An update of `runs` stacked agents, without memories and users."""
    import torch

    from lser import agents as kinds
    from lser.agents.device_stack import DeviceStack
    from lser.agents.stack import make_stack
    from lser.agents.team import Team

    low, high = -np.ones(ACTION, np.float32), np.ones(ACTION, np.float32)
    kind = getattr(kinds, agent.upper())
    made = [kind(OBSERVATION, low, high, seed=seed, diagnose_every=0) for seed in range(runs)]
    team = Team.of(made)
    shape = team.batch_shape(BATCH, packed=stacked)
    pin = device.startswith("cuda")
    buffers = [torch.randn(shape.floats, pin_memory=pin) for _ in range(2)]
    if stacked:
        stack: Any = DeviceStack(team, shape, buffers, torch.device(device))
    else:
        stack = make_stack(team, BATCH, device, buffers)
    for slot, agent_ in enumerate(made):
        stack.load(slot, agent_.learner.state_dict())
    everybody, turns = np.ones(runs, np.bool_), itertools.count()

    def update() -> None:
        stack.launch([everybody], next(turns) % 2)

    for _ in range(5):
        update()
    return update


def fleet(
    memories: tuple[str, ...], runs: int, options: Any, agent: str = "ddpg"
) -> dict[str, Any]:
    """Agent-steps per second of a fleet over its last `options.seconds`, and where they went."""
    from lser.experiments.study import job_for
    from lser.fleet.run import Fleet

    named = itertools.islice(itertools.cycle(memories), runs)
    with tempfile.TemporaryDirectory() as folder:
        jobs = [
            job_for(experiment(memory, seed, agent, options.generated), Path(folder), "benchmark")
            for seed, memory in enumerate(named)
        ]
        built = time.perf_counter()
        sailing = Fleet(jobs, device=options.device, workers=options.workers)
        built = time.perf_counter() - built
        marks: list[tuple[float, list[int], dict[str, float]]] = []
        seats = [squad.seats for squad in sailing.squads]
        warm = options.warm_up

        def stop() -> bool:
            now = time.perf_counter()
            steps = [squad.reached.steps for squad in sailing.squads]
            slow = any(made < SETTLED * runs for made, runs in zip(steps, seats, strict=True))
            if not marks and slow:
                return False
            marks.append((now, steps, sailing.times))
            if now - marks[0][0] > warm + options.seconds:
                raise Enough
            return False

        with suppress(Enough):
            sailing.go(stop)
    settled = next(k for k, mark in enumerate(marks) if mark[0] - marks[0][0] > warm)
    first, last = marks[settled], marks[-1]
    spent = last[0] - first[0]
    parts = {name: (last[2][name] - first[2][name]) / spent for name in last[2]}
    paces = [(there - here) / spent for here, there in zip(first[1], last[1], strict=True)]
    return {
        "runs": runs,
        "agent_steps_per_s": sum(paces),
        "squads": [
            {"runs": seats, "agent_steps_per_s": pace}
            for seats, pace in zip(seats, paces, strict=True)
        ],
        # what all would make at the pace of the slowest squad: when runs of equal length end
        "at_the_slowest_pace": runs * min(p / n for p, n in zip(paces, seats, strict=True)),
        "share_of_time": parts,
        "seconds_to_start": built,
    }


def machine(device: str) -> dict[str, Any]:
    import torch

    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    processor = models[0] if models else platform.processor()
    named = torch.cuda.get_device_name(device) if device.startswith("cuda") else processor
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    return {"device": named, "processor": processor, "cores": os.cpu_count(), **versions}


def huge_pages() -> str:
    """Who gets huge pages from the kernel: memories of many rows are read all over the place."""
    found = []
    for name in ("enabled", "shmem_enabled"):
        path = Path("/sys/kernel/mm/transparent_hugepage") / name
        chosen = re.search(r"\[(\w+)\]", path.read_text()) if path.exists() else None
        found.append(chosen[1] if chosen else "unknown")
    return f"{found[0]}, shared memory {found[1]}"


def commit() -> str | None:
    """The commit that was measured, marked if files differ from it; None outside a checkout."""
    command = ["git", "describe", "--always", "--abbrev=7", "--dirty", "--exclude=*"]
    try:
        found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return found.stdout.strip()


def floor_of(runs: int, rates: dict[str, float]) -> dict[str, float]:
    """Milliseconds that the operations and the bytes of one update of `runs` agents must take."""
    return {
        "operations_ms": 1e3 * runs * operations() / rates["operations_per_s"],
        "bytes_ms": 1e3 * runs * bytes_moved() / rates["bytes_per_s"],
    }


def on_device(options: Any) -> dict[str, Any]:
    rates = ceilings(options.device)
    found: dict[str, Any] = {"date": time.strftime("%Y-%m-%d", time.gmtime()), "code": commit()}
    found |= {"huge_pages": huge_pages(), "machine": machine(options.device)}
    found["ceilings"] = rates
    print(f"{found['machine']}\nmeasured ceilings: {rates}", flush=True)
    single = one_process(options.seconds, options.generated)
    found["one_process_steps_per_s"] = single
    print(f"one run, one process, one core: {single:,.0f} steps/s", flush=True)
    floor = floor_of(options.runs, rates)
    one = updater(options.runs, options.device)
    update = 1e3 * clocked(lambda: [one() for _ in range(100)], options.device, repeats=3) / 100
    least = max(floor.values())
    found["update"] = {"runs": options.runs, "ms": update, **floor, "of_floor": least / update}
    print(
        f"one update of {options.runs} agents: {update:.3f} ms; floor {least:.3f} ms "
        f"(operations {floor['operations_ms']:.3f}, bytes {floor['bytes_ms']:.3f}): "
        f"{least / update:.0%} of the floor",
        flush=True,
    )
    found["fleets"] = {}
    sets = {"lser": ("lser",), "uniform": ("uniform",), "mix": MIX}
    for name in options.only or sets:
        row = fleet(sets[name], options.runs, options)
        rate = row["agent_steps_per_s"]
        row["times_one_process"] = rate / single
        row["of_floor"] = least / 1e3 * rate / options.runs
        row["passed"] = rate >= TARGETS[name] and rate / single >= TIMES_ONE_CORE
        found["fleets"][name] = row
        parts = ", ".join(f"{part} {share:.0%}" for part, share in row["share_of_time"].items())
        squads = " + ".join(
            f"{squad['agent_steps_per_s']:,.0f} of {squad['runs']} runs" for squad in row["squads"]
        )
        print(
            f"{row['runs']} runs, {name}: {rate:,.0f} agent-steps/s ({squads}; all at the slowest "
            f"squad's pace {row['at_the_slowest_pace']:,.0f}), {rate / single:.0f}x one "
            f"process, {row['of_floor']:.0%} of the floor; {parts}; "
            f"started in {row['seconds_to_start']:.0f} s {'' if row['passed'] else 'MISSED'}",
            flush=True,
        )
    return found


def on_cpu(options: Any) -> dict[str, Any]:
    """One core: one process with one run beside a fleet of seeds, and updates alone, in turns."""
    import torch

    torch.set_num_threads(1)
    options.workers = 0
    rounds = []
    for _ in range(options.rounds):
        single = one_process(options.seconds, options.generated)
        rounds.append((single, fleet(("lser",), options.runs, options)["agent_steps_per_s"]))
    operands = [(torch.randn(m, k), torch.randn(k, n)) for m, k, n in products()]
    works = {
        "one agent": (updater(1, "cpu", stacked=False), 1),
        "agents taking turns": (updater(options.runs, "cpu", stacked=False), options.runs),
        "agents side by side": (updater(options.runs, "cpu"), options.runs),
        "matrix products alone": (lambda: [torch.mm(a, b) for a, b in operands], 1),
    }
    spent: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(30):
        for name, (work, share) in works.items():
            began = time.process_time()
            for _ in range(options.runs // share):
                work()
            spent[name].append((time.process_time() - began) / options.runs)
    ratios = {
        name: float(np.median(np.array(spent["one agent"]) / np.array(times)))
        for name, times in spent.items()
    }
    gain = float(np.median([fast / slow for slow, fast in rounds]))
    print(f"one run, one process, one core: {rounds[0][0]:,.0f} steps/s")
    print(f"{options.runs} runs in one fleet on one core: {gain:.2f}x (asked: 1.5x)")
    for name, times in spent.items():
        print(f"update, {name}: {1e3 * np.median(times):.3f} ms, {ratios[name]:.2f}x one agent's")
    return {
        "machine": machine("cpu"),
        "steps_per_s_of_one_process_and_of_a_fleet": rounds,
        "fleet_is_faster_by": gain,
        "update_ms": {name: 1e3 * float(np.median(times)) for name, times in spent.items()},
        "faster_than_one_agent_by": ratios,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--runs", type=int, default=0, help="120 on a device, 8 on a core")
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, default=3, help="of the CPU's comparison")
    parser.add_argument("--warm-up", type=float, default=10.0)
    parser.add_argument("--only", nargs="*", choices=sorted(TARGETS))
    parser.add_argument("--generated", action="store_true", help="without VirtualTaobao's files")
    parser.add_argument("--output", type=Path, default=ROOT / "results" / "speed_fleet.json")
    options = parser.parse_args()
    cpu = options.device == "cpu"
    options.runs = options.runs or (8 if cpu else 120)
    found = on_cpu(options) if cpu else on_device(options)
    kept = json.loads(options.output.read_text()) if options.output.exists() else {}
    if not cpu and "device" in kept:
        kept["device_before"] = [kept["device"], *kept.get("device_before", [])]
    kept["cpu" if cpu else "device"] = found
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(kept, indent=1) + "\n")
    return 0 if cpu else int(any(not row["passed"] for row in found["fleets"].values()))


if __name__ == "__main__":
    raise SystemExit(main())
