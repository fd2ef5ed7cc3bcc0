"""Runs in lockstep: each acts, remembers and is evaluated as if alone, all learn at once."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
import torch

from lser.agents import DDPG
from lser.agents.params import DDPGParams
from lser.catalogue import MEMORIES
from lser.experiments.build import make_env
from lser.experiments.experiment import Experiment, from_json
from lser.experiments.progress import Watcher
from lser.experiments.run import Run
from lser.experiments.study import Job
from lser.fleet.learner import StackedDDPG, kind
from lser.replay import Replay
from lser.training.loop import advance, draw, due, store
from lser.training.traffic import Arrival
from lser.types import Float32, Int64


@dataclass
class Lane:
    """One run's place in the fleet, and what is under way in it."""

    run: Run
    agent: DDPG
    watch: Watcher | None
    slot: int = 0  # in the stacked learner
    due: int = 0  # updates of this vector step
    ids: Int64 | None = None  # of the batch being learned, where the memory wants its TD errors

    def __post_init__(self) -> None:
        self.replay: Replay = self.run.replay
        # its next batch can be drawn while the last is being learned
        self.deaf = "td_errors" not in MEMORIES[self.run.experiment.names[1]].needs


class Fleet:
    """Runs with equal sizes and schedules, side by side in this process."""

    def __init__(
        self,
        runs: Sequence[Run],
        *,
        device: str = "cuda",
        watchers: Sequence[Watcher | None] | None = None,
    ) -> None:
        """Stack the learners of `runs`; `watchers` are told of their steps."""
        schedules = {schedule(run) for run in runs}
        if len(schedules) != 1:
            raise ValueError(f"runs of a fleet must have equal schedules, got {len(schedules)}")
        watch = watchers or [None] * len(runs)
        agents = [run.built.agent for run in runs]
        self._lanes = [
            Lane(run, agent, watcher)
            for run, agent, watcher in zip(runs, agents, watch, strict=True)
            if isinstance(agent, DDPG)  # all are: schedule() refuses others
        ]
        self._experiment: Experiment = runs[0].experiment
        self._device = device
        for run in runs:
            run.recorder.meta["engine"] = f"fleet on {device_name(device)}"
        self._stack()

    def go(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Run to the end of every run; on `stop` mark the unfinished ones as stopped."""
        for lane in self._lanes:
            lane.run.begin()
        try:
            for lane in self._lanes:
                _open(lane.run)
            self._finish(stop)
            while self._lanes and not stop():
                self._step()
                self._finish(stop)
        except BaseException as error:
            for lane in self._lanes:
                lane.run.recorder.fail(error)
            raise
        for lane in self._lanes:
            lane.run.recorder.pause()

    def _stack(self) -> None:
        for slot, lane in enumerate(self._lanes):
            lane.slot = slot
        users, seen = self._experiment.users, self._lanes[0].agent.observation_dim
        self._observations: Float32 = np.zeros((len(self._lanes), users, seen), np.float32)
        self._learner = StackedDDPG(
            [lane.agent for lane in self._lanes], self._experiment.batch_size, self._device
        )

    def _step(self) -> None:
        """One vector step of every run."""
        rate, starts = self._experiment.updates_per_step, self._experiment.learning_starts
        arrivals: dict[int, Arrival] = {}
        for lane, action in zip(self._lanes, self._choose(), strict=True):
            run = lane.run
            arrival = advance(run.traffic, run.progress, lane.agent.perturb(action), rate)
            lane.due = due(run.replay, run.progress, arrival, rate, starts)
            arrivals[lane.slot] = arrival
        turns = max(lane.due for lane in self._lanes)
        for turn in range(turns):
            self._turn(turn)
        steps = []
        for lane in self._in_order(after=turns):
            now, arrival = lane.run.progress, arrivals[lane.slot]
            steps.append((lane, store(lane.agent, lane.replay, now, arrival, None)))
        with self._timed_together():
            due_now = [lane.slot for lane in self._lanes if lane.run.evaluation_due]
            self._learner.download_actors(due_now)
        for lane, step in steps:
            lane.run.after(step, lane.watch)

    def _choose(self) -> Float32:
        """What each run's agent would do for its users, before noise, (lanes, N, A)."""
        with self._timed_together():
            for lane in self._lanes:
                assert lane.run.progress.observation is not None
                self._observations[lane.slot] = lane.run.progress.observation
            actions = self._learner.choose(self._observations)
        return actions[[lane.slot for lane in self._lanes]]

    def _turn(self, turn: int) -> None:
        """One update of every run that has one due."""
        active = np.zeros(len(self._learner.agents), np.bool_)
        for lane in self._in_order(after=turn):
            if turn < lane.due:
                batch = draw(lane.replay, lane.run.progress, turn, self._experiment.batch_size)
                self._learner.stage(lane.slot, batch)
                lane.ids = None if lane.deaf else batch.ids
                active[lane.slot] = True
        with self._timed_together():
            self._learner.launch(active)

    def _in_order(self, *, after: int) -> Iterator[Lane]:
        """The deaf memories; then the others, told the TD errors of the last of `after` turns."""
        yield from (lane for lane in self._lanes if lane.deaf)
        if after:
            with self._timed_together():
                errors = self._learner.errors()
        for lane in self._lanes:
            if lane.ids is not None:
                with lane.run.progress.timed("replay"):
                    lane.replay.update(lane.ids, errors[lane.slot])
                lane.ids = None
            if not lane.deaf:
                yield lane

    @contextmanager
    def _timed_together(self) -> Iterator[None]:
        """Count the time of a `with` block towards learning, in equal parts."""
        began = perf_counter()
        yield
        part = (perf_counter() - began) / len(self._lanes)
        for lane in self._lanes:
            lane.run.progress.times["learn"] += part

    def _finish(self, stop: Callable[[], bool]) -> None:
        """Complete the runs that had their sessions; with half the slots idle, stack anew."""
        complete = [lane for lane in self._lanes if lane.run.complete]
        if complete:
            self._learner.download([lane.slot for lane in complete])
        for lane in complete:
            if stop():
                return
            lane.run.finish()
            self._lanes.remove(lane)
        if 0 < 2 * len(self._lanes) <= len(self._learner.agents):
            self._learner.download([lane.slot for lane in self._lanes])
            self._stack()


def schedule(run: Run) -> tuple[object, ...]:
    """What runs of a fleet must have in common; ValueError for a learner that cannot be stacked."""
    return (*kind(run.built.agent), *_pace(run.experiment))


def groups(jobs: Iterable[Job]) -> list[list[Job]]:
    """Jobs that can share a fleet, longest first, then by cell; ValueError where one never can."""
    found: dict[object, list[Job]] = {}
    sizes: dict[object, object] = {}  # of each world's observations and actions
    for job in jobs:
        experiment = from_json(dict(job.experiment))
        agent = experiment.agent
        if not isinstance(agent, DDPGParams) or agent.normalise or agent.device != "cpu":
            raise ValueError(
                f"a fleet stacks DDPG on the CPU without normalise, got {agent} in {job.folder}"
            )
        world = experiment.simulator, "goals" in MEMORIES[experiment.names[1]].needs
        if world not in sizes:
            env = make_env(experiment, 1)
            sizes[world] = env.single_observation_space.shape, env.single_action_space.shape
        key = (sizes[world], replace(agent, noise_scale=0.0, discount=0.0), _pace(experiment))
        found.setdefault(key, []).append(job)
    return [sorted(group, key=_length_and_cell) for group in found.values()]


def _pace(experiment: Experiment) -> tuple[float, ...]:
    return (
        experiment.users,
        experiment.batch_size,
        experiment.updates_per_step,
        experiment.learning_starts,
    )


def _length_and_cell(job: Job) -> tuple[int, str]:
    experiment = from_json(dict(job.experiment))
    return -experiment.expected_updates, experiment.label


def device_name(device: str) -> str:
    """The device in words."""
    return torch.cuda.get_device_name(device) if device.startswith("cuda") else device


def _open(run: Run) -> None:
    """Let the first users in, and evaluate the untrained agent."""
    if run.progress.observation is None:
        run.progress.observation = run.traffic.reset(run.built.seeds.users)
    run.evaluate_if_due()
