"""Gradient updates per second on one core, beside other learners and the arithmetic alone.

``python benchmarks/learner.py`` prints a table, writes JSON to ``results/``, and exits with 1
when a target is missed. All learners take turns in one process on the same packed batches, timed by
processor time, and a ratio is the median over the turns. ``--sbx PYTHON`` adds the row of sbx (JAX)
from an interpreter that has sbx-rl. Stable-Baselines3 runs as it ships, without LayerNorm, and its
buffer is replaced by a ready batch, so only the updates are timed; the hand-written loop has our
LayerNorm networks under autograd with a fused Adam.
"""

import argparse
import copy
import functools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

OBSERVATION, ACTION, BATCH, HIDDEN = 91, 27, 128, 128
NAMES = ("DDPG", "TD3", "SAC")
SBX_STARTS = 8  # of its interpreter: its pace differs from one start to the next
BATCHES = 8  # few enough to stay in cache, as a batch does that was just gathered
ROOT = Path(__file__).resolve().parents[1]
TARGETS = {"sb3": 1.3, "hand-written": 0.95}

Update = Callable[[int], object]


def rows() -> list[Any]:
    """Packed transitions [observation | action | reward | next observation | flags]."""
    rng = np.random.default_rng(0)
    shape = (BATCHES, BATCH, 2 * OBSERVATION + ACTION + 3)
    return list(rng.uniform(-1, 1, shape).astype(np.float32))


def parts(block: Any) -> tuple[Any, Any, Any, Any]:
    """Observation, action, reward and next observation of packed rows."""
    edge = OBSERVATION + ACTION
    after = block[:, edge + 1 : edge + 1 + OBSERVATION]
    return block[:, :OBSERVATION], block[:, OBSERVATION:edge], block[:, edge], after


def ours(name: str) -> Update:
    from lser import agents
    from lser.types import Batch

    flags, ids, weights = np.zeros(BATCH, bool), np.arange(BATCH), np.ones(BATCH, np.float32)
    batches = [Batch(*parts(block), flags, flags, ids, weights) for block in rows()]
    agent = getattr(agents, name)(OBSERVATION, -np.ones(ACTION), np.ones(ACTION))
    return lambda turn: agent.learn(batches[turn % BATCHES])


def spaces() -> Any:
    """An environment that is never stepped, for libraries that ask for one."""
    import gymnasium as gym

    class Spaces(gym.Env[Any, Any]):
        observation_space = gym.spaces.Box(-1, 1, (OBSERVATION,), np.float32)
        action_space = gym.spaces.Box(-1, 1, (ACTION,), np.float32)

        def reset(self, **_: Any) -> Any:
            return np.zeros(OBSERVATION, np.float32), {}

    return Spaces()


def sb3(name: str) -> Update:
    import stable_baselines3
    import torch
    from stable_baselines3.common.logger import configure
    from stable_baselines3.common.type_aliases import ReplayBufferSamples

    knobs = {"policy_kwargs": {"net_arch": [HIDDEN, HIDDEN]}, "buffer_size": 1, "device": "cpu"}
    model = getattr(stable_baselines3, name)("MlpPolicy", spaces(), **knobs)
    model.set_logger(configure(None, []))
    samples = []
    for block in rows():
        observation, action, reward, after = (torch.from_numpy(x.copy()) for x in parts(block))
        done = torch.zeros(BATCH, 1)
        samples.append(ReplayBufferSamples(observation, action, after, done, reward[:, None]))
    turns = iter(range(sys.maxsize))
    model.replay_buffer.sample = lambda *_, **__: samples[next(turns) % BATCHES]
    return lambda _: model.train(gradient_steps=1, batch_size=BATCH)


def hand_written() -> Update:
    """DDPG as one writes it by hand: modules, autograd, fused Adam, foreach target update."""
    import torch
    from torch import nn

    def network(inputs: int, outputs: int) -> nn.Sequential:
        parts: list[nn.Module] = []
        for before in (inputs, HIDDEN):
            parts += [nn.Linear(before, HIDDEN), nn.LayerNorm(HIDDEN), nn.ReLU()]
        return nn.Sequential(*parts, nn.Linear(HIDDEN, outputs))

    actor, critic = network(OBSERVATION, ACTION), network(OBSERVATION + ACTION, 1)
    slow_actor, slow_critic = copy.deepcopy(actor), copy.deepcopy(critic)
    online: list[torch.Tensor] = [*actor.parameters(), *critic.parameters()]
    targets: list[torch.Tensor] = [*slow_actor.parameters(), *slow_critic.parameters()]
    actor_adam = torch.optim.Adam(actor.parameters(), lr=1e-4, fused=True)
    critic_adam = torch.optim.Adam(critic.parameters(), lr=1e-3, fused=True)
    weights = torch.ones(BATCH, 1)
    batches = [[torch.from_numpy(x) for x in parts(block)] for block in rows()]

    def update(turn: int) -> object:
        observation, action, reward, after = batches[turn % BATCHES]
        with torch.no_grad():
            inputs = torch.cat((after, torch.tanh(slow_actor(after))), 1)
            target = reward[:, None] + 0.99 * slow_critic(inputs)
        error = target - critic(torch.cat((observation, action), 1))
        loss = (weights * error.square()).mean()
        critic_adam.zero_grad(set_to_none=True)
        loss.backward()
        critic_adam.step()
        for parameter in critic.parameters():
            parameter.requires_grad_(False)
        value = critic(torch.cat((observation, torch.tanh(actor(observation))), 1)).mean()
        actor_adam.zero_grad(set_to_none=True)
        (-value).backward()
        actor_adam.step()
        for parameter in critic.parameters():
            parameter.requires_grad_(True)
        with torch.no_grad():
            torch._foreach_lerp_(targets, online, 0.001)
        return loss.item(), value.item(), error.detach()[:, 0].numpy()

    return update


def matrix_products() -> Update:
    """The matrix products of one DDPG update and nothing else."""
    import torch

    inner = (BATCH, HIDDEN, HIDDEN)
    actor = [(BATCH, OBSERVATION, HIDDEN), inner, (BATCH, HIDDEN, ACTION)]
    critic = [(BATCH, OBSERVATION + ACTION, HIDDEN), inner, (BATCH, HIDDEN, 1)]
    down = [(BATCH, 1, HIDDEN), inner]  # through the critic to its first layer
    weights = [(k, m, n) for net in (actor, critic) for m, k, n in net]
    shapes = 2 * actor + 3 * critic + weights + 2 * down
    shapes += [(BATCH, HIDDEN, ACTION), (BATCH, ACTION, HIDDEN), inner]
    jobs = [(torch.randn(m, k), torch.randn(k, n), torch.empty(m, n)) for m, k, n in shapes]

    def update(_: int) -> object:
        with torch.inference_mode():
            for left, right, out in jobs:
                torch.mm(left, right, out=out)
        return None

    return update


def rate(update: Update, seconds: float) -> float:
    """Updates per second of processor time."""
    count, start = 0, time.process_time()
    while (spent := time.process_time() - start) < seconds:
        for _ in range(10):
            update(count)
            count += 1
    return count / spent


def _train(model: Any, _: int) -> object:
    return model.train(gradient_steps=1, batch_size=BATCH)


def sbx_rates(seconds: float) -> dict[str, float]:
    """sbx's own train step, jitted, on a ready batch; runs in the interpreter that has it."""
    from importlib import import_module

    from stable_baselines3.common.logger import configure
    from stable_baselines3.common.type_aliases import ReplayBufferSamples

    class Columns:
        def __init__(self, values: Any) -> None:
            self.values = values

        def numpy(self) -> Any:
            return self.values

    observation, action, reward, after = (x.copy() for x in parts(rows()[0]))
    fields = (observation, action, after, np.zeros(BATCH, np.float32), reward)
    columns: list[Any] = [Columns(field) for field in fields]
    samples = ReplayBufferSamples(*columns)
    found = {}
    for name in NAMES:
        knobs = {"policy_kwargs": {"net_arch": [HIDDEN, HIDDEN]}, "buffer_size": 1}
        model = getattr(import_module("sbx"), name)(
            "MlpPolicy", spaces(), batch_size=BATCH, **knobs
        )
        model.set_logger(configure(None, []))
        model.replay_buffer.sample = lambda *_, **__: samples
        update = functools.partial(_train, model)
        for turn in range(30):
            update(turn)
        found[name] = statistics.median(rate(update, seconds) for _ in range(7))
    return found


def measure(repetitions: int, seconds: float) -> dict[str, list[float]]:
    """Rates of every learner, taking turns."""
    import torch

    torch.set_num_threads(1)
    learners = {f"lser {name}": ours(name) for name in NAMES}
    learners |= {f"sb3 {name}": sb3(name) for name in NAMES}
    learners |= {"hand-written DDPG": hand_written(), "matrix products DDPG": matrix_products()}
    for update in learners.values():
        for turn in range(30):
            update(turn)
    rates: dict[str, list[float]] = {name: [] for name in learners}
    for _ in range(repetitions):
        for name, update in learners.items():
            rates[name].append(rate(update, seconds))
    return rates


def compare(rates: dict[str, list[float]]) -> list[dict[str, Any]]:
    """One line per learner: the rate, and how much faster lser's same algorithm is."""
    lines = []
    for name, found in rates.items():
        who, algorithm = name.rsplit(" ", 1)
        mine = rates[f"lser {algorithm}"]
        if len(found) == len(mine):
            ratio = statistics.median(a / b for a, b in zip(mine, found, strict=True))
        else:
            ratio = statistics.median(mine) / statistics.median(found)
        target = TARGETS.get(who)
        passed = None if target is None else ratio >= target
        line = {"learner": who, "algorithm": algorithm, "updates_per_s": statistics.median(found)}
        line["from_to"] = [min(found), max(found)]
        lines.append(line | {"lser_is_faster_by": ratio, "target": target, "passed": passed})
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.15, help="per learner and repetition")
    parser.add_argument("--output", type=Path, default=ROOT / "results" / "speed_learner.json")
    parser.add_argument("--sbx", type=Path, help="an interpreter that has sbx-rl")
    parser.add_argument("--only-sbx", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only_sbx:
        print(json.dumps(sbx_rates(options.seconds)))
        return 0
    rates = measure(options.repetitions, options.seconds)
    if options.sbx:
        command = [str(options.sbx), __file__, "--only-sbx", "--seconds", str(options.seconds)]
        flags = {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false", "OMP_NUM_THREADS": "1"}
        for _ in range(SBX_STARTS):
            found = subprocess.run(
                command, env=os.environ | flags, stdout=subprocess.PIPE, check=True
            )
            for name, value in json.loads(found.stdout.splitlines()[-1]).items():
                rates.setdefault(f"sbx {name}", []).append(value)
    lines = compare(rates)
    print(f"{'learner':16} {'algorithm':10} {'updates/s':>9} {'lser is':>9} {'target':>7}")
    for line in lines:
        target = "" if line["target"] is None else f"{line['target']:.2f}x"
        verdict = {None: "", True: "pass", False: "MISSED"}[line["passed"]]
        print(
            f"{line['learner']:16} {line['algorithm']:10} {line['updates_per_s']:9.0f} "
            f"{line['lser_is_faster_by']:8.2f}x {target:>7} {verdict}"
        )
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(lines, indent=1) + "\n")
    return int(any(line["passed"] is False for line in lines))


if __name__ == "__main__":
    raise SystemExit(main())
