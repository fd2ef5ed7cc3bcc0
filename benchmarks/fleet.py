"""Stacked updates per second on a device, alone and shared by several processes.

``python benchmarks/fleet.py --device cuda --agents 16 64 --processes 1 4 8`` prints, for every
combination, the time of one stacked update, the updates of all agents of all processes per second,
and how many times that is what one agent alone makes on one core in the same run. Batches are
staged once and copied to the device for every update; sampling them is not timed.
"""

import argparse
import multiprocessing
import time
from typing import Any

import numpy as np

OBSERVATION, ACTION, BATCH = 91, 27, 128
SECONDS = 2.0


def agents(count: int) -> list[Any]:
    from lser.agents import DDPG

    bound = np.ones(ACTION, np.float32)
    return [DDPG(OBSERVATION, -bound, bound, seed=seed) for seed in range(count)]


def batch() -> Any:
    from lser.types import Batch

    rng = np.random.default_rng(0)
    shape = (BATCH, 2 * OBSERVATION + ACTION)
    seen, done, after = np.split(
        rng.uniform(-1, 1, shape).astype(np.float32), [OBSERVATION, OBSERVATION + ACTION], axis=1
    )
    reward, weights = rng.random((2, BATCH), np.float32)
    flags = np.zeros(BATCH, np.bool_)
    return Batch(seen, done, reward, after, flags, flags, np.arange(BATCH), weights)


def paced(update: Any) -> float:
    """Updates per second over SECONDS, after a warm-up."""
    for _ in range(5):
        update()
    began, count = time.perf_counter(), 0
    while time.perf_counter() - began < SECONDS:
        update()
        count += 1
    return count / (time.perf_counter() - began)


def stacked(device: str, count: int, gate: Any, rates: Any) -> None:
    """One process: build, wait for the others, update for SECONDS, report the rate."""
    import torch

    from lser.fleet.learner import StackedDDPG

    torch.set_num_threads(1)
    learner = StackedDDPG(agents(count), BATCH, device)
    for slot in range(count):
        learner.stage(slot, batch())
    everybody = np.ones(count, np.bool_)

    def update() -> None:
        learner.launch(everybody)
        learner.errors()

    gate.wait()
    rates.put(paced(update))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--agents", type=int, nargs="+", default=[16, 64])
    parser.add_argument("--processes", type=int, nargs="+", default=[1])
    arguments = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    [single], given = agents(1), batch()
    alone = paced(lambda: single.learn(given))
    print(f"one agent, one core: {1e3 / alone:.3f} ms an update")
    context = multiprocessing.get_context("spawn")
    for processes in arguments.processes:
        for count in arguments.agents:
            gate, rates = context.Barrier(processes), context.Queue()
            work = (arguments.device, count, gate, rates)
            started = [context.Process(target=stacked, args=work) for _ in range(processes)]
            for process in started:
                process.start()
            paces = [rates.get(timeout=300) for _ in started]
            for process in started:
                process.join()
            total = sum(paces)
            print(
                f"{processes} x {count} agents on {arguments.device}: "
                f"{1e3 * processes / total:.3f} ms an update, "
                f"{count * total:,.0f} run-updates/s, {count * total / alone:.1f}x",
                flush=True,
            )


if __name__ == "__main__":
    main()
