"""One run: train, evaluate on the way, keep a record, and be able to continue after a kill."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

from lser import files
from lser.checks import check_number
from lser.experiments import records
from lser.experiments.build import Built, build
from lser.experiments.experiment import Experiment, to_json
from lser.experiments.owner import Owner
from lser.experiments.progress import Status, Watcher
from lser.experiments.recording import Recorder
from lser.experiments.signals import Signals
from lser.experiments.stopping import Interrupted as Interrupted
from lser.experiments.stopping import stop_flag
from lser.files import State, taken_from
from lser.training import Evaluation, Progress, Step, Traffic, evaluate, train
from lser.training import checkpoint as checkpoints
from lser.training.checkpoint import Checkpoints
from lser.training.evaluate import metric_of

CHECKPOINTS = "checkpoints"
AGENT = "agent"


class Run:
    """An experiment under way in a record's folder."""

    fed: ClassVar[bool] = False  # by collectors elsewhere: the subclass that can

    def __init__(
        self,
        experiment: Experiment,
        folder: Path,
        *,
        command: str = "",
        checkpoint_seconds: float = 60.0,
        again: bool = False,
    ) -> None:
        self.experiment = experiment
        self.folder = folder
        self.checkpoint_seconds = check_number("checkpoint_seconds", checkpoint_seconds, low=0.0)
        self.owner = Owner(folder)
        try:
            self._set_up(command, again)
        except BaseException:
            self.owner.release()
            raise

    def _set_up(self, command: str, again: bool) -> None:
        experiment, folder = self.experiment, self.folder
        if bool(experiment.feeders) != self.fed:
            raise ValueError(
                f"feeders={experiment.feeders}: `lser train` runs these, on a Ray cluster"
            )
        if records.is_done(folder) and not again:
            Recorder(folder, to_json(experiment), command)  # of another experiment? it says so
            raise ValueError(f"{folder} is finished; --again runs it anew, over this record")
        self.built: Built = build(experiment)
        self.traffic = Traffic(self.built.env, experiment.horizon)
        self.progress = Progress()
        self.recorder = Recorder(folder, to_json(experiment), command)
        self.metric = metric_of(self.built.env)
        self.signals = Signals(experiment, self.metric, folder.name)
        self._next_evaluation = 0
        self._spent = 0.0  # seconds of earlier parts
        self._cpu = 0.0
        self.replay = self.built.replay
        self.recorder.meta["checkpoint_seconds"] = self.checkpoint_seconds
        self.checkpoints = Checkpoints(folder / CHECKPOINTS)
        if again:
            self.checkpoints.clear()
            self.recorder.begin_anew()
        else:
            self._continue()

    def go(self, watch: Watcher | None = None) -> None:
        """Train to the end; raises Interrupted after a clean stop on SIGINT or SIGTERM."""
        self.begin()
        try:
            with stop_flag() as stop:
                self._train(watch, stop)
        except Interrupted:
            raise
        except KeyboardInterrupt:  # asked twice: it goes on from its last checkpoint
            self.recorder.pause()
            raise
        except BaseException as error:
            self.recorder.fail(error)
            raise
        finally:
            self.owner.release()

    def begin(self) -> None:
        """Start the clocks and mark the record as under way."""
        self._began, self._cpu_began = time.perf_counter(), time.process_time()
        self.recorder.begin(self.metric.name)

    @property
    def complete(self) -> bool:
        """Whether the run has had its sessions."""
        return self.progress.sessions >= self.experiment.sessions

    def _train(self, watch: Watcher | None, stop: Callable[[], bool]) -> None:
        saved = time.monotonic()
        steps = self.steps()
        self.evaluate_if_due()
        while not self.complete:
            self.after(next(steps), watch)
            if stop():
                if self.can_be_saved:
                    self.checkpoint()
                self.recorder.pause()
                raise Interrupted
            if self.can_be_saved and time.monotonic() - saved > self.checkpoint_seconds:
                self.checkpoint()
                saved = time.monotonic()
        self.finish()

    def steps(self) -> Iterator[Step]:
        """Training, one vector step after another."""
        experiment = self.experiment
        return train(
            self.traffic,
            self.built.agent,
            self.replay,
            batch_size=experiment.batch_size,
            updates_per_step=experiment.updates_per_step,
            learning_starts=experiment.learning_starts,
            seed=self.built.seeds.users,
            progress=self.progress,
        )

    @property
    def can_be_saved(self) -> bool:
        """Whether there can be checkpoints."""
        return self.traffic.can_be_saved

    def after(self, step: Step, watch: Watcher | None) -> None:
        """Count a vector step that was just taken, evaluate if that is due, and tell `watch`."""
        self.count(step)
        self.evaluate_if_due()
        if watch is not None:
            watch(self.status(step))

    def count(self, step: Step) -> None:
        """Add a vector step to the score over training."""
        self.signals.count(step)
        self.signals.warn(self.progress)

    @property
    def evaluation_due(self) -> bool:
        """Whether enough sessions have passed since the last evaluation."""
        return self.progress.sessions >= self._next_evaluation

    def evaluate_if_due(self) -> None:
        """Add a point to the curve when it is time."""
        if self.evaluation_due:
            self.evaluation()({})

    def evaluation(self) -> Callable[[dict[str, float]], None]:
        """The evaluation that is due, as work to be done now or later; it counts as done.

        The work takes what became known of the critic's values in the meantime.
        """
        experiment = self.experiment
        counts, signals = self._counts(), self.signals.line(self.progress)
        every = experiment.evaluate_every
        self._next_evaluation = (self.progress.sessions // every + 1) * every

        def work(values: dict[str, float]) -> None:
            result = self._evaluate(experiment.evaluate_sessions, self.built.seeds.evaluation)
            self.recorder.append({**counts, **_scores(result), **signals, **values})
            threshold = experiment.intervention
            if threshold is not None and result.metric >= threshold:
                self.intervene()

        return work

    def intervene(self) -> None:
        """Stop exploring for good, and with it what `intervention_stops` says."""
        self.built.agent.stop_exploring()
        if self.experiment.intervention_stops == "noise and greedy":
            self.replay.stop_exploring()
        if self.experiment.intervention_stops == "learning":
            self.progress.frozen = True

    def _evaluate(self, sessions: int, seed: int) -> Evaluation:
        with self.progress.timed("evaluate"):
            return evaluate(
                self.built.agent, self.built.evaluation_env, sessions=sessions, seed=seed
            )

    def _counts(self) -> dict[str, float]:
        now = self.progress
        return {"sessions": now.sessions, "steps": now.steps, "updates": now.updates}

    def status(self, step: Step) -> Status:
        """How far the run is, for those who watch it."""
        return Status(
            step,
            self.experiment.sessions,
            self.metric.name,
            self.signals.so_far,
            self.recorder.last_line,
            self._elapsed(),
        )

    def _elapsed(self) -> float:
        return self._spent + time.perf_counter() - self._began

    def _cpu_seconds(self) -> float:
        return self._cpu + time.process_time() - self._cpu_began

    def finish(self) -> None:
        """Evaluate at length, keep the agent, and complete the record."""
        result = self._evaluate(self.experiment.final_sessions, self.built.seeds.final)
        files.sweep(self.folder / AGENT)
        checkpoints.save(self.folder / AGENT, 0, self.built.agent.state_dict())
        times = {**self.progress.times, "wall": self._elapsed(), "cpu": self._cpu_seconds()}
        final = {**self._counts(), **_scores(result), **self.signals.line(self.progress)}
        final |= self.more()
        self.recorder.finish(final, times, self.replay.stats())
        self.checkpoints.clear()
        self.owner.release()

    def more(self) -> dict[str, float]:
        """Further numbers for the end of the record."""
        return {}

    def traffic_state(self) -> dict[str, Any]:
        """Where the users stand, for a checkpoint."""
        return self.traffic.state_dict()

    def load_traffic_state(self, state: dict[str, Any]) -> None:
        """Go on with the users of a checkpoint."""
        self.traffic.load_state_dict(state)

    def checkpoint(self) -> Path:
        """Write everything needed to continue exactly here."""
        replay = self.replay.state()
        tree = {
            "agent": self.built.agent.state_dict(),
            "replay": {"config": json.dumps(replay.config), "arrays": replay.arrays},
            "traffic": self.traffic_state(),
            "progress": asdict(self.progress),
            "sums": self.signals.sums,
            "next_evaluation": self._next_evaluation,
            "curve": self.recorder.curve,
            "spent": self._elapsed(),
            "cpu": self._cpu_seconds(),
        }
        return self.checkpoints.save(self.progress.steps, tree)

    def _continue(self) -> None:
        """Take up the newest whole checkpoint, if there is one, or start from nothing."""
        try:
            tree = self.checkpoints.latest()
        except ValueError as error:
            raise ValueError(f"{error}; --again starts from nothing, over this record") from None
        if tree is None:
            self.recorder.keep([])
            return
        with taken_from(self.folder / CHECKPOINTS):
            self._take_up(tree)
        self.recorder.keep(tree["curve"])

    def _take_up(self, tree: dict[str, Any]) -> None:
        self.built.agent.load_state_dict(tree["agent"])
        replay = tree["replay"]
        state = State(json.loads(replay["config"]), replay["arrays"])
        self.replay = type(self.built.replay).from_state(state)
        self.load_traffic_state(tree["traffic"])
        self.progress = Progress(**tree["progress"])
        self.signals.sums = tree["sums"]
        self._next_evaluation = tree["next_evaluation"]
        self._spent, self._cpu = tree["spent"], tree["cpu"]


def _scores(result: Evaluation) -> dict[str, float]:
    scores = result._asdict()
    scores["evaluated"] = scores.pop("sessions")
    scores["reward_per_step"] = result.reward / max(result.length, 1.0)
    return scores


def run(
    experiment: Experiment,
    folder: Path,
    *,
    watch: Watcher | None = None,
    command: str = "",
    checkpoint_seconds: float = 60.0,
    again: bool = False,
) -> None:
    """Run (or continue) `experiment` in `folder`; a finished record only if it is to be `again`."""
    every = checkpoint_seconds
    Run(experiment, folder, command=command, checkpoint_seconds=every, again=again).go(watch)
