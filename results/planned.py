"""Runs experiments of plan.md as fleets, in the order and with the cuts that are written there.

``python results/planned.py FOLDER d --seconds 420`` runs D's fleets one after another;
``python results/planned.py FOLDER a --seconds 900`` measures how fast the paper's regime is on
seeds that are not reported, sets the length that fits, and runs it; ``b``, ``c``, ``f``, ``g``,
``h`` (with J's second runs), ``k``, ``s`` and those after it run what `cells` says, several letters
in one fleet. What is finished is not run again. A fleet that the time cuts off leaves its records
as stopped, with a last evaluation.
"""

import argparse
import logging
import multiprocessing
import os
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from cells import STUDIES, Choice, chosen, command_of

from lser.experiments.experiment import Experiment
from lser.experiments.studies import plan
from lser.experiments.study import Job, finished, job_for

MAP = ("uniform", "reward-top", "shuffled-code", "lser")
LONG = MAP
EXTRA = (
    *("lser 6 bits raw", "lser 10 bits raw", "lser 14 bits raw"),
    *("uniform with the cure", "reward-top with the cure", "lser with the cure"),
)
FIRST, SECOND = range(100, 110), range(110, 120)
PAGES = 7.73  # steps of a session of VirtualTaobao, whatever is shown
SLOWER = 1.12  # a run over what is measured at its start: memories outgrow the caches
PROBE_SEED, PROBE_SECONDS = 900, 15.0


class TimeUp(Exception):
    """The deadline has passed."""


def in_primary_cells(one: Experiment) -> bool:
    """Batch 32, discount 0, sparsity .005: these are in the long runs."""
    return one.batch_size == 32 and one.agent.discount == 0 and one.simulator.sparsity < 0.01


def fleets_of_d() -> dict[str, list[Experiment]]:
    """D's fleets by name, most important first."""
    long = [one for one in plan("locality", "paper", 20) if one.label in LONG]
    rest: dict[str, list[Experiment]] = {}
    for name, seeds in (("first", FIRST), ("second", SECOND)):
        here = [one for one in plan("locality", "medium", 20) if one.seed in seeds]
        chart = [one for one in here if one.label in MAP and not in_primary_cells(one)]
        extra = [one for one in here if one.label in EXTRA and in_primary_cells(one)]
        rest[f"{name} ten seeds, batch 32"] = [o for o in chart if o.batch_size == 32]
        rest[f"{name} ten seeds, batch 128"] = [o for o in chart if o.batch_size == 128]
        rest[f"{name} ten seeds, other arms"] = extra
    return {"the primary cells": long, **rest}


def dealt(experiments: Sequence[Experiment], crews: int) -> list[Experiment]:
    """In an order that gives every crew few worlds, as each has to be built in its process."""
    ordered = sorted(experiments, key=lambda one: str(one.simulator))
    share = -(-len(ordered) // crews)
    chunks = [ordered[start : start + share] for start in range(0, len(ordered), share)]
    return [chunk[at] for at in range(share) for chunk in chunks if at < len(chunk)]


def sail(jobs: Sequence[Job], device: str, workers: int, deadline: float, split: int = 1) -> None:
    """One fleet, in this process, until `deadline`; what is under way then is scored as it is."""
    import torch

    from lser.fleet.messages import Ready
    from lser.fleet.run import Fleet

    torch.set_num_threads(1)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    began = time.time()
    fleet = Fleet(jobs, device=device, workers=workers, split=split)
    print(f"{len(jobs)} runs ready after {time.time() - began:.0f} s", flush=True)

    def stop() -> bool:
        if time.time() > deadline:
            for squad in (one for one in fleet.squads if one.reached.running):
                running = squad._member & (squad.board.running > 0)
                squad._ready = [Ready((), tuple(map(int, row.nonzero()[0]))) for row in running]
            raise TimeUp
        return False

    try:
        fleet.go(stop)
    except TimeUp:
        print("cut off", flush=True)
    print(f"fleet ended after {time.time() - began:.0f} s", flush=True)


def pace(jobs: Sequence[Job], device: str, workers: int, seconds: float, split: int = 1) -> float:
    """Seconds of a vector step of all runs, once updates have been captured."""
    from lser.fleet.run import Fleet

    fleet = Fleet(jobs, device=device, workers=workers, split=split)
    marks: list[tuple[float, int]] = []

    def stop() -> bool:
        now, steps = time.perf_counter(), fleet.reached.steps
        if marks or steps > 300 * fleet.seats:
            marks.append((now, steps))
            if now - marks[0][0] > seconds:
                raise TimeUp
        return False

    with suppress(TimeUp):
        fleet.go(stop)
    (began, first), (ended, last) = marks[0], marks[-1]
    return (ended - began) * len(jobs) / (last - first)


def length(seconds: float, step: float) -> int:
    """The sessions, in steps of 5,000 up to the paper's 90,000, that fit."""
    return max(5_000, min(90_000, int(seconds / (step * PAGES * SLOWER) / 5_000) * 5_000))


def apart(work: Any, *arguments: Any) -> None:
    """Do `work` in a process of its own, which takes its device memory with it."""
    process = multiprocessing.get_context("spawn").Process(target=work, args=arguments)
    process.start()
    process.join()


def run_d(options: argparse.Namespace, deadline: float) -> None:
    """D's fleets, as long as there is time."""
    for name, experiments in list(fleets_of_d().items())[options.first : options.last]:
        if time.time() > deadline:
            break
        scale = "paper" if name == "the primary cells" else "medium"
        command = f"lser study locality --scale {scale} --seeds 20 --engine fleet"
        print(f"{name}: {len(experiments)} runs, {time.ctime()}", flush=True)
        some = [replace(one, **options.small) for one in dealt(experiments, options.workers)]
        jobs = [job_for(one, options.folder, command) for one in some[: options.limit]]
        apart(sail, jobs, options.device, options.workers, deadline)


def run_a(options: argparse.Namespace, deadline: float) -> None:
    """A, or half of it, at the length that fits or is given; the probe's runs are thrown away."""
    command = "lser study paper-regime --scale paper --seeds 10 --engine fleet"
    runs = [
        replace(one, seed=one.seed + options.shift)
        for one in plan("paper-regime", "paper", 10)
        if options.horizon in ("both", one.horizon)
    ]
    runs = sorted(runs, key=lambda one: one.label)[: options.limit]
    sessions = options.sessions or fitting(runs, options, deadline)
    jobs = [job_for(replace(one, sessions=sessions), options.folder, command) for one in runs]
    apart(sail, jobs, options.device, options.workers, deadline, options.split)


def fitting(runs: Sequence[Experiment], options: argparse.Namespace, deadline: float) -> int:
    """The sessions that fit, by the pace of the same fleet on seeds that are thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        probe = [replace(one, seed=one.seed - 100 + PROBE_SEED) for one in runs]
        jobs = [job_for(one, Path(folder), "probe") for one in probe]
        step = pace(jobs, options.device, options.workers, options.probe, options.split)
    sessions = length(deadline - time.time() - 20, step)
    print(f"a vector step takes {1e3 * step:.2f} ms: {sessions:,} sessions", flush=True)
    return sessions


def run_chosen(options: argparse.Namespace, deadline: float) -> None:
    """The runs of a letter, or of some, in one fleet."""
    choice = Choice(
        arms=[arm for arm in options.arms.split(",") if arm],
        seeds=options.seeds or 0,
        sessions=options.sessions or 0,
        shift=options.shift,
        reward=options.reward or "",
        noise=options.noise,
        flips=options.flips,
    )
    letters = options.letters
    runs = chosen(letters, choice)[: options.limit]
    jobs = [job_for(one, options.folder, command_of(one, letters)) for one in runs]
    left = [job for job in jobs if not finished(job)]
    if left and time.time() < deadline:
        print(f"{' '.join(letters)}: {len(left)} of {len(jobs)} runs, {time.ctime()}", flush=True)
        apart(sail, left, options.device, options.workers, deadline)


ALONE = {"d": run_d, "a": run_a}  # by fleets of their own


def main() -> None:
    """Run what some letters stand for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("letters", nargs="+", choices=("d", "a", *STUDIES))
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--first", type=int, default=0, help="of D's fleets")
    parser.add_argument("--last", type=int, help="of D's fleets, this one not included")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--probe", type=float, default=PROBE_SECONDS)
    parser.add_argument("--limit", type=int, help="runs of a fleet at most, to try this out")
    parser.add_argument("--sessions", type=int, help="of each run, in place of what fits")
    horizons = ("both", "session", "continuing")
    parser.add_argument("--horizon", default="both", choices=horizons, help="of A")
    parser.add_argument("--split", type=int, default=1, help="squads that A's runs are dealt to")
    parser.add_argument("--arms", default="", help="labels with commas between, of the letters")
    parser.add_argument("--seeds", type=int, help="how many, of the letters")
    parser.add_argument("--shift", type=int, default=0, help="added to seeds")
    parser.add_argument("--reward", choices=("quality", "watch time"), help="of F")
    parser.add_argument("--noise", type=float, choices=(0.1, 0.3), help="of C")
    parser.add_argument("--flips", type=int, choices=(0, 4), help="of G")
    options = parser.parse_args()
    deadline = time.time() + options.seconds
    options.small = {"sessions": options.sessions} if options.sessions else {}
    alone = [letter for letter in options.letters if letter in ALONE]
    if alone and len(options.letters) > 1:
        parser.error(f"{alone[0]} has fleets of its own: it goes with no other letter")
    ALONE.get(options.letters[0], run_chosen)(options, deadline)


if __name__ == "__main__":
    main()
