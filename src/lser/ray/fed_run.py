"""A run whose users are served elsewhere: feeders send transitions, this process learns."""

from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar

import numpy as np

from lser.agents.actor_critic import ActorCritic
from lser.agents.protocol import Learned
from lser.experiments.experiment import Experiment, to_json
from lser.experiments.progress import Watcher
from lser.experiments.run import Run
from lser.ray.engine import connected
from lser.ray.feeders import Block, Feeders, Policy, unpack
from lser.training import Step
from lser.training.loop import due, learn
from lser.types import Bool, Float32, Transitions

PATIENCE = 1.0  # seconds without a block until the run looks whether it is to stop


class FedRun(Run):
    """An experiment with feeders; the memory and the learner are in this process.

    Checkpoints hold everything but the feeders' users: a run that goes on has new ones.
    """

    fed: ClassVar[bool] = True

    def __init__(
        self,
        experiment: Experiment,
        folder: Path,
        *,
        address: str = "",
        command: str = "",
        checkpoint_seconds: float = 60.0,
        again: bool = False,
    ) -> None:
        """Prepare the run; `address` is the cluster's, as ``ray.init`` takes it."""
        self._address = address
        self._earlier = {"started": 0, "deaths": 0}
        super().__init__(
            experiment, folder, command=command, checkpoint_seconds=checkpoint_seconds, again=again
        )
        if not isinstance(self.built.agent, ActorCritic):
            self.owner.release()
            name = experiment.names[2]
            raise ValueError(f"feeders act by an actor's vector: ddpg, td3 or sac, got {name}")

    def go(self, watch: Watcher | None = None) -> None:
        """Train to the end; raises Interrupted after a clean stop on SIGINT or SIGTERM."""
        try:
            with connected(self._address) as ray:
                count, started = self.experiment.feeders, self._earlier["started"]
                plain = to_json(self.experiment)
                self._feeders = Feeders(ray, plain, count, started=started)
                try:
                    super().go(watch)
                finally:
                    self._feeders.close()
        finally:
            self.owner.release()

    @property
    def can_be_saved(self) -> bool:
        """Always: users are not part of it."""
        return True

    def steps(self) -> Iterator[Step]:
        """Learn from blocks as they come; a step of no rows when none comes."""
        agent, now = self.built.agent, self.progress
        assert isinstance(agent, ActorCritic)
        while True:
            began = perf_counter()
            found = self._feeders.next(Policy.of(agent), PATIENCE)
            now.times["env"] += perf_counter() - began
            if found is None:
                nothing = np.zeros(0, np.float32)
                yield self._step(nothing, nothing > 0, None, (0.0, 0.0))
            else:
                yield self._learn(agent, *found)

    def _learn(self, agent: ActorCritic, number: int, block: Block) -> Step:
        """The updates that a block allows, each for one of its observations; then it is stored."""
        experiment, now, replay = self.experiment, self.progress, self.replay
        arrived, users = unpack(block.rows, agent.observation_dim)
        if agent.normaliser is not None and agent.exploring:
            agent.normaliser.see(arrived.observation)
        now.recent = [arrived.observation]
        rows = len(block.rows)
        rate, first = experiment.updates_per_step, experiment.learning_starts
        updates = due(replay, now, rows, rate, first)
        learned = learn(agent, replay, now, updates, experiment.batch_size)
        began, start = perf_counter(), 0
        streams = users + number * experiment.users
        for stop in np.cumsum(block.steps):  # vector step by vector step, in order
            if stop > start:
                part = Transitions._make(field[start:stop] for field in arrived)
                replay.extend(*part, streams=streams[start:stop])
            start = int(stop)
        now.times["replay"] += perf_counter() - began
        now.sessions += block.sessions
        now.steps += rows
        done = arrived.terminated | arrived.truncated
        return self._step(arrived.reward, done, learned, block.sums)

    def _step(
        self, reward: Float32, done: Bool, learned: Learned | None, sums: tuple[float, float]
    ) -> Step:
        """What just happened, with the sums of the simulator's metric as its `info`."""
        now = self.progress
        names = (self.metric.numerator, self.metric.denominator)
        info = {name: np.array([total]) for name, total in zip(names, sums, strict=True)}
        return Step(now.steps, now.sessions, now.updates, reward, done, learned, info)

    def more(self) -> dict[str, float]:
        """How many feeders there were, and how many of them died."""
        return {"feeders": self.experiment.feeders, "feeder_deaths": self._totals()["deaths"]}

    def _totals(self) -> dict[str, int]:
        now = self._feeders
        return {"started": now.started, "deaths": self._earlier["deaths"] + now.deaths}

    def traffic_state(self) -> dict[str, Any]:
        """How many feeders were started and how many died; not their users."""
        return self._totals()

    def load_traffic_state(self, state: dict[str, Any]) -> None:
        """Number the next feeders after the earlier ones."""
        self._earlier = {name: int(state[name]) for name in ("started", "deaths")}
