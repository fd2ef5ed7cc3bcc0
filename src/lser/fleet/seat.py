"""One run's place in a fleet: it acts, remembers and is evaluated as if alone."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from lser.agents.actor_critic import ActorCritic
from lser.agents.minibatch import HostBatches
from lser.agents.protocol import Learned, Values
from lser.catalogue import MEMORIES
from lser.experiments.experiment import Experiment
from lser.experiments.progress import Watcher
from lser.experiments.run import Run
from lser.fleet.board import Board
from lser.replay.memory import Memory
from lser.training.loop import advance, draw, due, look, store
from lser.training.traffic import Arrival
from lser.types import Float32, Int64


class Seat:
    """A run whose learner is somewhere else.

    `see` writes what the run sees on the board, `draw_ahead` draws the batches of its next updates,
    `act` lets the chosen actions happen, `hear` takes TD errors. The draws come before the step, as
    they need only what was stored before it: so they are ready when the device is.
    """

    def __init__(self, run: Run, watch: Watcher | None = None) -> None:
        """Take a place for `run`; ValueError if it cannot be part of a fleet."""
        agent = run.built.agent
        if not isinstance(agent, ActorCritic):
            raise ValueError(f"a fleet stacks DDPG, TD3 and SAC, got {type(agent).__name__}")
        if run.traffic.mode is AutoresetMode.NEXT_STEP:
            raise ValueError("a fleet needs environments that reset in the same step")
        self.run, self.agent, self.watch = run, agent, watch
        self.slot = 0
        # its next batch cannot be drawn before the last one's errors are known
        self.waits = waits_for_errors(run.experiment)
        # rows go from a memory of ours straight to where the device copies them from
        replay = run.replay
        self._lends = replay.store.lend if isinstance(replay, Memory) else None
        self.running = True
        # the evaluation that is due, and wants the actor
        self._evaluation: Callable[[dict[str, float]], None] | None = None
        # an evaluation that later steps depend on, or that depends on them, cannot wait
        self.evaluates_at_once = run.experiment.intervention is not None or (
            agent.normaliser is not None
        )
        self._seen = np.empty((0, 0), np.float32)  # (N, O) what the actor reads
        self._arrival: Arrival | None = None
        self._ids: Int64 | None = None  # of the batch being learned, if its errors are wanted
        self._learned: Learned | None = None  # only the critic's values, when it was time
        self._due = 0
        self._drawn = 0
        self.settled = True  # whether the last step is stored

    def open(self) -> None:
        """Let the first users in, and evaluate the untrained agent."""
        run = self.run
        run.begin()
        if run.progress.observation is None:
            run.progress.observation = run.traffic.reset(run.built.seeds.users)
        run.evaluate_if_due()
        self.running = not run.complete

    def see(self, board: Board) -> None:
        """Write what the run sees next on the board, and how many updates are due."""
        run, experiment = self.run, self.run.experiment
        now, rate = run.progress, experiment.updates_per_step
        self._seen = self.agent.look(look(now, rate))
        board.observations[self.slot] = self._seen
        normal = self.agent.draw_to_act(experiment.users)
        for draws in board.normals:
            draws[self.slot] = 0.0 if normal is None else normal.t().numpy()
        self._due = due(run.replay, now, experiment.users, rate, experiment.learning_starts)
        self._drawn = 0
        board.due[self.slot] = self._due

    def draw_ahead(self, board: Board, batches: list[HostBatches], step: int) -> Iterator[None]:
        """The batches of the vector step that was seen, one after another."""
        for _ in range(min(self._due, 1) if self.waits else self._due):
            self._draw(board, batches, step)
            yield

    def _draw(self, board: Board, batches: list[HostBatches], step: int) -> None:
        turn = self._drawn
        host = batches[board.buffer(step, turn)]
        if self._lends is not None and (rows := host.rows(self.slot)) is not None:
            self._lends(rows)
        batch = draw(self.run.replay, self.run.progress, turn, self.run.experiment.batch_size)
        self.agent.stage(batch, host, self.slot)
        self._ids = batch.ids if self.waits else None
        self._drawn += 1

    def note(self, values: list[float]) -> None:
        """Take what the critic said in the last updates, the numbers of `Values`."""
        self.run.progress.values = values
        self._learned = Learned({}, np.empty(0, np.float32), Values._make(values))

    def act(self, action: Float32) -> None:
        """Let the chosen actions (N, A) happen, with noise; store unless errors are awaited."""
        action = self.agent.perturb(action, self._seen)
        self._arrival = advance(self.run.traffic, self.run.progress, action)
        self._store_if_all_is_there()

    def hear(self, board: Board, batches: list[HostBatches], step: int) -> None:
        """Take the TD errors of the last batch, and draw the next or, after the last, store."""
        if self._ids is None:
            return
        with self.run.progress.timed("replay"):
            self.run.replay.update(self._ids, board.errors[self.slot])
        self._ids = None
        if self._drawn < self._due:
            self._draw(board, batches, step)
        else:
            self._store_if_all_is_there()

    @property
    def blocked(self) -> bool:
        """Whether an evaluation must come before the next step."""
        return self.wants_actor and self.evaluates_at_once

    @property
    def wants_actor(self) -> bool:
        """Whether an evaluation is due."""
        return self._evaluation is not None

    def _store_if_all_is_there(self) -> None:
        """Store the step once it was taken and the last TD errors before it were heard."""
        run = self.run
        if self._arrival is None or self._ids is not None:
            return
        self.settled = True
        step = store(self.agent, run.replay, run.progress, self._arrival, self._learned)
        self._arrival = self._learned = None
        run.count(step)
        self.running = not run.complete
        if self.running and run.evaluation_due:
            self._evaluation = run.evaluation()
        if self.watch is not None:
            self.watch(run.status(step))

    def evaluation(self, actor: Float32) -> Callable[[], None]:
        """The evaluation that is due, of this actor (P,), as work for later."""
        work, vector = self._evaluation, self.agent.learner.actor.vector
        assert work is not None
        self._evaluation = None
        values = self.run.signals.values(self.run.progress)

        def evaluate() -> None:
            vector.numpy()[:] = actor
            work(values)

        return evaluate

    def finish(self, state: dict[str, Any]) -> None:
        """Complete the record with the learner's `state`."""
        self.agent.learner.load_state_dict(state)
        if self.run.evaluation_due:
            self.run.evaluate_if_due()
        self.run.finish()

    def checkpoint(self, state: dict[str, Any]) -> None:
        """Write all that is needed to go on exactly here."""
        self.agent.learner.load_state_dict(state)
        if self._evaluation is not None:
            self._evaluation(self.run.signals.values(self.run.progress))
            self._evaluation = None
        self.run.checkpoint()


def waits_for_errors(experiment: Experiment) -> bool:
    """Whether a memory's next draw depends on the TD errors of the last."""
    return "td_errors" in MEMORIES[experiment.names[1]].needs


def sees_goals(experiment: Experiment) -> bool:
    """Whether a memory needs a goal in the observation, which makes networks wider."""
    return "goals" in MEMORIES[experiment.names[1]].needs
