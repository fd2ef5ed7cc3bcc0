"""Feeders: collectors at a Ray cluster that act by a learner's policy and send it transitions."""

import logging
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from lser.agents.actor_critic import ActorCritic
from lser.experiments.build import build_agent, make_env
from lser.experiments.experiment import from_json
from lser.training import Traffic
from lser.training.evaluate import metric_of
from lser.types import Float32, Int64, Transitions

AHEAD = 2  # blocks that a feeder may be ahead of the learner: more only makes policies older
VECTOR_STEPS = 32  # of one block
log = logging.getLogger("lser")


class Policy(NamedTuple):
    """What a feeder needs of the learner's agent: its actor as one flat vector."""

    actor: Float32  # (P,)
    exploring: bool
    moments: dict[str, Any] | None  # of the observations, where the agent standardises them

    @classmethod
    def of(cls, agent: ActorCritic) -> "Policy":
        """The agent's policy as it is now."""
        actor = agent.learner.actor.vector.detach().reshape(-1).cpu().numpy().copy()
        moments = None if agent.normaliser is None else agent.normaliser.state_dict()
        return cls(actor, agent.exploring, moments)


class Block(NamedTuple):
    """What a feeder sends: the transitions of several vector steps as one packed array."""

    rows: Float32  # (R, 2 O + A + 4): the six fields side by side, and the user's place
    steps: Int64  # (S,) rows of each vector step
    sessions: int  # that ended
    sums: tuple[float, float]  # of the metric's numerator and denominator


def pack(transitions: Transitions, users: Int64) -> Float32:
    """Transitions, and who took them, as rows of one array."""
    seen, action, reward, after, terminated, truncated = transitions
    columns = (reward[:, None], terminated[:, None], truncated[:, None], users[:, None])
    return np.hstack([seen, action, after, *columns]).astype(np.float32)


def unpack(rows: Float32, observation_dim: int) -> tuple[Transitions, Int64]:
    """What `pack` was given."""
    after = rows.shape[1] - 4 - observation_dim
    seen, action = rows[:, :observation_dim], rows[:, observation_dim:after]
    reward, terminated, truncated, users = rows[:, -4:].T
    flags = terminated > 0, truncated > 0
    return Transitions(seen, action, reward, rows[:, after:-4], *flags), users.astype(np.int64)


class Feeder:
    """Users of its own and a copy of the policy; an actor of the cluster."""

    def __init__(self, experiment: dict[str, Any], number: int) -> None:
        """Let users in; `number` tells it apart from all others, also from those it replaces."""
        torch.set_num_threads(1)
        settings = from_json(dict(experiment))
        settings = replace(settings, agent=replace(settings.agent, device="cpu"))
        users, agent = np.random.SeedSequence([settings.seed, 1 + number]).generate_state(2)
        env = make_env(settings, settings.users)
        self._traffic = Traffic(env, settings.horizon)
        self._metric = metric_of(env)
        self._agent: Any = build_agent(settings, env, int(agent))
        self._observation = self._traffic.reset(int(users))

    def collect(self, policy: Policy) -> Block:
        """Act for some vector steps by this policy."""
        agent: ActorCritic = self._agent
        agent.learner.actor.vector.numpy()[:] = policy.actor
        if agent.normaliser is not None and policy.moments is not None:
            agent.normaliser.load_state_dict(policy.moments)
        if not policy.exploring:
            agent.stop_exploring()
        parts, counts, sessions, sums = [], [], 0, np.zeros(2)
        for _ in range(VECTOR_STEPS):
            action = agent.act(self._observation, explore=True)
            arrival = self._traffic.step(self._observation, action)
            reward = arrival.block.reward
            told = {"reward": reward, "steps": reward * 0 + 1, **arrival.info}
            sums += [
                told[name].sum() for name in (self._metric.numerator, self._metric.denominator)
            ]
            if arrival.done.any():
                agent.end_sessions(arrival.done)
                sessions += int(np.count_nonzero(arrival.done))
            users = arrival.streams if arrival.streams is not None else np.arange(len(reward))
            parts.append(pack(arrival.block, users))
            counts.append(len(reward))
            self._observation = arrival.observation
        return Block(np.vstack(parts), np.array(counts), sessions, (sums[0], sums[1]))


class Feeders:
    """Feeders under way: each at most a few blocks ahead, and replaced when it dies."""

    def __init__(
        self, ray: Any, experiment: dict[str, Any], count: int, *, started: int = 0
    ) -> None:
        """Start `count` feeders; `started` were there before, in an earlier part of the run."""
        self._ray, self._experiment = ray, experiment
        self.started = started
        self.deaths = 0
        self._in_vain = 0  # deaths since the last block
        self._count = count
        cores = ray.cluster_resources().get("CPU", 0.0)
        if cores < count:
            log.warning("%d feeders share %g cores of the cluster", count, cores)
        share = min(1.0, cores / count)
        options = {"num_cpus": int(share * 1_000) / 1_000, "max_restarts": 0}
        self._kind = ray.remote(Feeder).options(**options)
        self._pending: dict[Any, int] = {}  # block to come -> number of its feeder
        self._actors: dict[int, Any] = {}

    def next(self, policy: Policy, timeout: float) -> tuple[int, Block] | None:
        """The next block and the number of its feeder; None when none came in time.

        Feeders that are not ahead enough get this policy for their next block.
        """
        ray = self._ray
        self._ask(policy)
        ready, _ = ray.wait(list(self._pending), num_returns=1, timeout=timeout)
        for promise in ready:
            number = self._pending.pop(promise)
            try:
                block: Block = ray.get(promise)
            except ray.exceptions.RayTaskError as error:  # of the simulator: it would come again
                raise error.as_instanceof_cause() from None
            except ray.exceptions.RayError as error:
                self._bury(number, error)
            else:
                self._in_vain = 0
                return number, block
        return None

    def _ask(self, policy: Policy) -> None:
        while len(self._actors) < self._count:
            self._actors[self.started] = self._kind.remote(self._experiment, self.started)
            self.started += 1
        behind = list(self._pending.values())
        wanted = [n for n in self._actors for _ in range(AHEAD - behind.count(n))]
        if wanted:
            shared = self._ray.put(policy)  # one copy, however many feeders
            for number in wanted:
                self._pending[self._actors[number].collect.remote(shared)] = number

    def _bury(self, number: int, error: Exception) -> None:
        """Forget a feeder that died, once: its blocks that are finished still arrive."""
        if self._actors.pop(number, None) is None:
            return
        self.deaths += 1
        self._in_vain += 1
        why = str(error).strip().splitlines()[0]
        log.warning("feeder %d died (%s); another takes its place", number, why)
        if self._in_vain > 2 * self._count + 2:
            raise RuntimeError(f"feeders die before they send anything: {error}")

    def close(self) -> None:
        """End them all."""
        for actor in self._actors.values():
            self._ray.kill(actor)
        self._actors.clear()
        self._pending.clear()
