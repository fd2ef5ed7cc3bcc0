"""Feeders: what they send arrives, one that dies is replaced, and the record says so."""

import json
import os
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from clusters import cluster, within

from lser.agents import DDPG
from lser.experiments import records
from lser.experiments.build import build
from lser.experiments.experiment import Experiment, to_json
from lser.experiments.presets import preset
from lser.experiments.run import Run
from lser.ray.fed_run import FedRun
from lser.ray.feeders import VECTOR_STEPS, Feeder, Feeders, Policy, pack, unpack
from lser.types import Transitions


def small(memory="lser", **changes):
    base = preset("bazaar", memory, "ddpg", scale="quick")
    sizes = {"evaluate_every": 100, "evaluate_sessions": 20, "final_sessions": 40}
    sizes |= {"users": 4, "batch_size": 32, "capacity": 5_000, "feeders": 2, "sessions": 300}
    return replace(base, label=memory, **{**sizes, **changes})


def test_packed_rows_come_back_as_they_were():
    draws = np.random.default_rng(0)
    seen, action, after = (draws.random((5, n), np.float32) for n in (3, 2, 3))
    flags = np.array([1, 0, 0, 0, 0], bool), np.array([0, 0, 1, 0, 0], bool)
    whole = Transitions(seen, action, draws.random(5, np.float32), after, *flags)
    users = np.array([4, 0, 2, 9, 1])
    rows = pack(whole, users)
    assert rows.dtype == np.float32
    found, who = unpack(rows, 3)
    for name, one, other in zip(whole._fields, whole, found, strict=True):
        assert one.dtype == other.dtype, name
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(who, users)


def test_a_feeder_acts_by_the_policy_it_is_given():
    experiment = small(users=3)
    feeder = Feeder(to_json(experiment), 0)
    agent = build(replace(experiment, feeders=0)).agent
    agent.stop_exploring()
    block = feeder.collect(Policy.of(agent))
    moves, users = unpack(block.rows, agent.observation_dim)
    np.testing.assert_allclose(moves.action, agent.act(moves.observation), rtol=1e-5, atol=1e-6)
    assert len(block.rows) == 3 * VECTOR_STEPS == block.steps.sum()
    np.testing.assert_array_equal(users.reshape(VECTOR_STEPS, 3), [[0, 1, 2]] * VECTOR_STEPS)
    np.testing.assert_array_equal(moves.observation[3:], moves.next_observation[:-3])  # one stream
    assert block.sessions == moves.truncated.sum()
    again = feeder.collect(Policy.of(agent))
    first = unpack(again.rows, agent.observation_dim)[0].observation[:3]
    np.testing.assert_array_equal(first, moves.next_observation[-3:])


def test_feeders_have_users_of_their_own_and_each_its_own_noise():
    policy = Policy.of(build(replace(small(), feeders=0)).agent)
    one, other = (Feeder(to_json(small()), number).collect(policy) for number in (0, 1))
    assert not np.array_equal(one.rows, other.rows)
    same = Feeder(to_json(small()), 0).collect(policy)
    np.testing.assert_array_equal(one.rows, same.rows)


def test_the_policy_carries_the_moments_of_observations():
    agent = DDPG(3, [-1.0], [1.0], normalise=True)
    agent.act(np.random.default_rng(0).normal(5, 2, (50, 3)).astype(np.float32), explore=True)
    policy = Policy.of(agent)
    assert policy.moments["count"] == 50
    before = policy.actor.copy()
    agent.learner.actor.vector += 1.0
    np.testing.assert_array_equal(policy.actor, before)  # a copy, not a view


class Promise:
    def __init__(self, number):
        self.number = number


class FakeRay:
    """A cluster in this process: `dead` feeders fail instead of sending."""

    class exceptions:
        class RayError(Exception):
            pass

        class RayTaskError(RayError):
            def as_instanceof_cause(self):
                return ZeroDivisionError("of the simulator")

    def __init__(self):
        self.asked, self.dead, self.wrong, self.killed = [], set(), set(), []

    def cluster_resources(self):
        return {"CPU": 8.0}

    def remote(self, kind):
        return self

    def options(self, **options):
        self.made = lambda number: self._actor(number)
        return type("Kind", (), {"remote": lambda _, experiment, number: self.made(number)})()

    def _actor(self, number):
        ray = self

        class Collect:
            @staticmethod
            def remote(policy):
                ray.asked.append((number, policy))
                return Promise(number)

        return type("Actor", (), {"collect": Collect, "number": number})()

    def put(self, policy):
        return policy

    def wait(self, promises, num_returns, timeout):
        return promises[:1], promises[1:]

    def get(self, promise):
        if promise.number in self.wrong:
            raise self.exceptions.RayTaskError
        if promise.number in self.dead:
            raise self.exceptions.RayError("gone")
        return promise.number

    def kill(self, actor):
        self.killed.append(actor.number)


def test_no_feeder_is_more_than_two_blocks_ahead():
    ray = FakeRay()
    feeders = Feeders(ray, {}, 3)
    assert feeders.next("first", 1.0) is not None
    assert [number for number, _ in ray.asked] == [0, 0, 1, 1, 2, 2]
    feeders.next("second", 1.0)
    assert ray.asked[6:] == [(0, "second")]  # the one that sent gets the newer policy
    feeders.close()
    assert ray.killed == [0, 1, 2]


def test_a_dead_feeder_is_counted_once_and_replaced():
    ray = FakeRay()
    feeders = Feeders(ray, {}, 2, started=7)
    ray.dead = {7}
    assert feeders.next("p", 1.0) is None
    assert feeders.next("p", 1.0) is None  # its other block is lost too: one death
    assert feeders.next("p", 1.0) == (8, 8)
    assert feeders.deaths == 1
    assert feeders.started == 10
    assert {number for number, _ in ray.asked} == {7, 8, 9}


def test_feeders_that_only_die_end_the_run():
    ray = FakeRay()
    ray.dead = set(range(100))
    feeders = Feeders(ray, {}, 1)
    with pytest.raises(RuntimeError, match="die before they send anything"):
        drain(feeders)


def drain(feeders):
    for _ in range(100):
        feeders.next("p", 1.0)


def test_an_error_of_the_simulator_is_the_runs_own():
    ray = FakeRay()
    ray.wrong = {0}
    with pytest.raises(ZeroDivisionError):
        Feeders(ray, {}, 1).next("p", 1.0)


def test_runs_without_a_cluster_refuse_feeders(tmp_path):
    with pytest.raises(ValueError, match="feeders=2"):
        Run(small(), tmp_path / "a")
    with pytest.raises(ValueError, match="ddpg, td3 or sac, got popular"):
        FedRun(replace(preset("bazaar", "lser", "popular"), feeders=1), tmp_path / "b")
    with pytest.raises(ValueError, match="feeders must be >= 0, got -1"):
        Experiment(feeders=-1)


@pytest.mark.slow
def test_a_fed_run_learns_survives_a_death_and_says_so(tmp_path):
    ray = pytest.importorskip("ray")
    experiment = small(sessions=900, memory="der")
    with within(300), cluster(1, cpus=2):
        run = FedRun(experiment, tmp_path / "fed", checkpoint_seconds=0.5)
        killed = []

        def watch(status):
            if status.step.sessions > 300 and not killed:
                killed.append(victim(run))
                os.kill(killed[0], signal.SIGKILL)

        run.go(watch)
        assert ray.is_initialized()  # it was there before
    record = records.load(tmp_path / "fed")
    assert record.status == "done"
    assert record.final["feeders"] == 2
    assert record.final["feeder_deaths"] == 1
    assert record.final["sessions"] >= 900
    pages = record.final["steps"]
    assert abs(record.final["updates"] - pages) < 400  # one per step, from learning_starts on
    assert record.final["learning_metric"] > 0
    assert record.curve[-1]["metric"] > 0


def victim(run):
    """The process of one of the feeders."""
    import ray

    actor = next(iter(run._feeders._actors.values()))
    return ray.get(actor.__ray_call__.remote(lambda self: os.getpid()))


@pytest.mark.slow
def test_a_stopped_fed_run_goes_on_with_new_users(tmp_path):
    from lser.experiments.stopping import Interrupted

    experiment = small(sessions=600)
    with within(300), cluster(1, cpus=2):
        first = FedRun(experiment, tmp_path / "fed")

        def stop(status):
            if status.step.sessions > 200:
                signal.raise_signal(signal.SIGTERM)

        with pytest.raises(Interrupted):
            first.go(stop)
        assert records.load(tmp_path / "fed").status == "stopped"
        second = FedRun(experiment, tmp_path / "fed")
        assert second.progress.sessions > 200
        assert second._earlier == {"started": 2, "deaths": 0}
        second.go()
    record = records.load(tmp_path / "fed")
    assert record.status == "done"
    assert len(record.meta["parts"]) == 2
    assert json.loads((Path(record.path) / "experiment.json").read_text())["feeders"] == 2
