"""A study's runs as fleets: compatible runs together, one fleet after another on a device."""

import json
import logging
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf
from pathlib import Path

from lser.agents.params import ActorCriticParams
from lser.experiments import records
from lser.experiments.experiment import Experiment, from_json
from lser.experiments.ready import check_device, sizes
from lser.experiments.recording import write_json
from lser.experiments.study import Done, Job, end_with_parent, finished, for_children
from lser.replay.memories.params import UniformParams


@dataclass(frozen=True)
class Fleets:
    """A map over fleets: runs whose learners are stacked on `device`, one fleet at a time."""

    device: str = "cuda"
    size: int = 128
    """Runs side by side, at most."""
    workers: int = 0
    """Processes for the runs' users and memories; 0: one per core, less the learners' own."""
    deadline_seconds: float = inf
    """When this has passed, unfinished runs write checkpoints and stop."""
    checkpoint_seconds: float = 600.0
    """Seconds between checkpoints."""

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(f"size must be at least 1, got {self.size}")
        if self.workers < 0:
            raise ValueError(f"workers must not be negative, got {self.workers}")
        for name in ("deadline_seconds", "checkpoint_seconds"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}")

    def run(self, jobs: Sequence[Job], *, started: Callable[[Job], None]) -> Iterator[Done]:
        """Run one fleet after another; a job that ends without a complete record is not ok."""
        check_device(self.device)
        deadline = time.time() + self.deadline_seconds
        context = multiprocessing.get_context("spawn")
        for place, fleet in enumerate(self.fleets(jobs)):
            if place and time.time() > deadline:
                yield from _not_begun(fleet, started)
                continue
            arguments = (fleet, self.device, self._workers(), deadline, self.checkpoint_seconds)
            process = context.Process(target=run_fleet, args=arguments)
            with for_children():
                process.start()
            try:
                for job in fleet:
                    started(job)
                process.join()
            finally:
                if process.is_alive():
                    process.terminate()  # SIGTERM: the runs write checkpoints and stop
                    process.join()
                for job in fleet:
                    _mark_as_dead(job)
            for job in fleet:
                yield Done(job, finished(job))

    def _workers(self) -> int:
        return self.workers or max(1, (os.cpu_count() or 1) - 1)

    def fleets(self, jobs: Sequence[Job]) -> list[list[Job]]:
        """The jobs split into as few fleets as possible, of about equal sizes."""
        fleets = []
        for group in groups(jobs):
            count = ceil(len(group) / self.size)
            # dealt like cards: each fleet gets its share of long runs and of costly memories
            fleets += [group[place::count] for place in range(count)]
        return fleets


def run_fleet(
    jobs: Sequence[Job], device: str, workers: int, deadline: float, checkpoint_seconds: float
) -> None:
    """Carry out the jobs of one fleet, with this process as its learner, until `deadline`."""
    end_with_parent()
    import torch  # here: the parent plans and watches without it

    from lser.experiments.stopping import stop_flag
    from lser.fleet.run import Fleet

    torch.set_num_threads(1)
    if not sys.stderr.isatty():  # on a terminal the study shows how far it is
        logging.basicConfig(level=logging.INFO, format="%(message)s")
    with stop_flag() as stop:
        fleet = Fleet(jobs, device=device, workers=workers, checkpoint_seconds=checkpoint_seconds)
        fleet.go(lambda: stop() or time.time() > deadline)


def groups(jobs: Iterable[Job]) -> list[list[Job]]:
    """Jobs that can share a fleet, longest first, then by cell; ValueError where one never can."""
    found: dict[object, list[Job]] = {}
    known: dict[object, object] = {}  # the sizes of each world's observations and actions
    for job in jobs:
        experiment = from_json(dict(job.experiment))
        agent = experiment.agent
        if not isinstance(agent, ActorCriticParams) or agent.device != "cpu":
            raise ValueError(
                f"a fleet stacks DDPG, TD3 and SAC whose own device is cpu, got "
                f"{experiment.names[2]} on {getattr(agent, 'device', 'no device')} in {job.folder}"
            )
        world = experiment.simulator
        if world not in known:
            known[world] = sizes(replace(experiment, memory=UniformParams()))  # without a goal
        found.setdefault((known[world], _kind(experiment)), []).append(job)
    return [sorted(group, key=_length_and_cell) for group in found.values()]


def _kind(experiment: Experiment) -> tuple[object, ...]:
    """What of an agent and its pace must be equal: rates, discounts, bounds and noise need not."""
    free: dict[str, object] = {"actor_lr": 1.0, "critic_lr": 1.0, "discount": 0.0, "tau": 1.0}
    free |= {"value_bound": None, "weight_noise": 0.0}
    free |= {"diagnose_every": 0, "normalise": False, "norm_gain": "ones", "delay": 1}
    free |= {"noise_theta": 1.0, "noise_sigma": 0.0, "noise_scale": 0.0, "noise_reset": True}
    free |= {"temperature": 1.0, "temperature_lr": 1.0, "target_entropy": None}
    agent = experiment.agent
    alike = replace(agent, **{name: x for name, x in free.items() if hasattr(agent, name)})
    pace = experiment.users, experiment.batch_size, experiment.updates_per_step
    return alike, pace, experiment.learning_starts


def _length_and_cell(job: Job) -> tuple[int, str]:
    experiment = from_json(dict(job.experiment))
    return -experiment.expected_updates, experiment.label


def _not_begun(jobs: Sequence[Job], started: Callable[[Job], None]) -> Iterator[Done]:
    for job in jobs:
        started(job)
        yield Done(job, False, "the deadline passed before it began")


def _mark_as_dead(job: Job) -> None:
    """Let no record say `running` whose process is gone."""
    path = Path(job.folder) / records.META
    try:
        meta = json.loads(path.read_text())
    except (OSError, ValueError):
        return
    if meta.get("status") == "running":
        error = "the fleet's process died; the run goes on from its last checkpoint, if any"
        write_json(path, {**meta, "status": "failed", "error": error})
