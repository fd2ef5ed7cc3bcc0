"""Training speed with LSER inside other libraries, beside each library's own uniform buffer.

``python benchmarks/adapters.py`` prints a table and writes JSON. In one process on one thread, the
two buffers take turns training the same agent on Bazaar, timed by processor time; the ratio is
the median over turns, and at least .9 is asked for. A library that is not installed is left out
and said so. A new library is one function from a buffer to a trainer, and one line in LIBRARIES.
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import gymnasium as gym
import numpy as np
import torch

import lser  # noqa: F401  registers the simulators

ROOT = Path(__file__).resolve().parents[1]
TARGET = 0.9
CAPACITY, BATCH, HIDDEN = 100_000, 128, [128, 128]
WARM_UP = 500  # steps of every trainer before its first turn: random actions, then learning

Buffer = Literal["uniform", "lser"]
Trainer = Callable[[int], None]  # trains for as many more environment steps, an update at each


class Library(NamedTuple):
    """A library by its import name, and how a trainer with one of the two buffers is made."""

    module: str
    trainer: Callable[[Buffer], Trainer]


def sb3(buffer: Buffer) -> Trainer:
    """Stable-Baselines3's DDPG."""
    from stable_baselines3 import DDPG
    from stable_baselines3.common.noise import NormalActionNoise

    from lser.adapters.sb3 import MemoryReplayBuffer, QueryCallback

    env = gym.make("lser/Bazaar-v0")
    assert env.action_space.shape is not None
    quiet, loud = np.zeros(env.action_space.shape), np.full(env.action_space.shape, 0.1)
    model = DDPG(
        "MlpPolicy",
        env,
        buffer_size=CAPACITY,
        learning_starts=WARM_UP // 2,
        batch_size=BATCH,
        policy_kwargs={"net_arch": HIDDEN},
        action_noise=NormalActionNoise(quiet, loud),
        replay_buffer_class=MemoryReplayBuffer if buffer == "lser" else None,
        device="cpu",
        seed=0,
    )
    callback = QueryCallback() if buffer == "lser" else None

    def train(steps: int) -> None:
        model.learn(steps, callback=callback, reset_num_timesteps=False)

    return train


def torchrl(buffer: Buffer) -> Trainer:
    """TorchRL's DDPG loss and tensor storage in a loop of its usual form."""
    from tensordict import TensorDict
    from tensordict.nn import TensorDictModule
    from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
    from torchrl.modules import MLP, ValueOperator
    from torchrl.objectives import DDPGLoss, SoftUpdate

    from lser.adapters.torchrl import MemorySampler, memory_pair

    env = gym.make("lser/Bazaar-v0")
    space, rng = env.action_space, np.random.default_rng(0)
    assert isinstance(space, gym.spaces.Box)
    assert env.observation_space.shape is not None
    (width,), (size,) = env.observation_space.shape, space.shape
    net = MLP(width, size, num_cells=HIDDEN, activation_class=torch.nn.ReLU)
    policy = torch.nn.Sequential(net, torch.nn.Tanh())
    actor = TensorDictModule(policy, in_keys=["observation"], out_keys=["action"])
    value = MLP(width + size, 1, num_cells=HIDDEN, activation_class=torch.nn.ReLU)
    critic = ValueOperator(value, in_keys=["observation", "action"])
    loss = DDPGLoss(actor, critic, loss_function="l2", delay_actor=True, delay_value=True)
    loss.make_value_estimator(gamma=0.99)
    targets, optim = SoftUpdate(loss, tau=0.005), torch.optim.Adam(loss.parameters(), 1e-3)
    parts: dict[str, Any] = {}
    if buffer == "lser":
        sampler, writer = memory_pair("lser", CAPACITY, width)
        parts = {"sampler": sampler, "writer": writer}
    rb = TensorDictReplayBuffer(storage=LazyTensorStorage(CAPACITY), batch_size=BATCH, **parts)
    seen, _ = env.reset(seed=0)

    def step(random: bool) -> None:
        nonlocal seen
        with torch.no_grad():
            action = policy(torch.from_numpy(seen)).numpy()
        noisy = action + rng.normal(0, 0.1, size)
        action = (rng.uniform(-1, 1, size) if random else np.clip(noisy, -1, 1)).astype(np.float32)
        after, reward, terminated, truncated, _ = env.step(action)
        following = {
            "observation": torch.from_numpy(after)[None],
            "reward": torch.tensor([[float(reward)]]),
            "terminated": torch.tensor([[terminated]]),
            "done": torch.tensor([[terminated or truncated]]),
        }
        fields = {"observation": torch.from_numpy(seen), "action": torch.from_numpy(action)}
        batched = {key: value[None] for key, value in fields.items()}
        rb.extend(TensorDict({**batched, "next": following}, [1]))
        seen = env.reset()[0] if terminated or truncated else after

    def update() -> None:
        if isinstance(rb.sampler, MemorySampler):
            rb.sampler.query = seen
        values = loss(rb.sample())
        optim.zero_grad()
        (values["loss_actor"] + values["loss_value"]).backward()
        optim.step()
        targets.step()

    def train(steps: int) -> None:
        for _ in range(steps):
            random = len(rb) < WARM_UP // 2
            step(random)
            if not random:
                update()

    return train


def tianshou(buffer: Buffer) -> Trainer:
    """Tianshou's DDPG and off-policy trainer."""
    from tianshou.algorithm.modelfree.ddpg import DDPG, ContinuousDeterministicPolicy
    from tianshou.algorithm.optim import AdamOptimizerFactory
    from tianshou.data import Collector, VectorReplayBuffer
    from tianshou.env import DummyVectorEnv
    from tianshou.exploration import GaussianNoise
    from tianshou.trainer import OffPolicyTrainerParams
    from tianshou.utils.net.common import Net
    from tianshou.utils.net.continuous import ContinuousActorDeterministic, ContinuousCritic

    from lser.adapters.tianshou import MemoryReplayBuffer, QueryCollector

    env = gym.make("lser/Bazaar-v0")
    seen, action = env.observation_space.shape, env.action_space.shape
    assert seen is not None
    assert action is not None
    actor = ContinuousActorDeterministic(
        preprocess_net=Net(state_shape=seen, hidden_sizes=HIDDEN), action_shape=action
    )
    both = Net(state_shape=seen, action_shape=action, hidden_sizes=HIDDEN, concat=True)
    policy = ContinuousDeterministicPolicy(
        actor=actor, action_space=env.action_space, exploration_noise=GaussianNoise(sigma=0.1)
    )
    algorithm = DDPG(
        policy=policy,
        policy_optim=AdamOptimizerFactory(lr=1e-3),
        critic=ContinuousCritic(preprocess_net=both),
        critic_optim=AdamOptimizerFactory(lr=1e-3),
    )
    envs = DummyVectorEnv([lambda: env])
    collector: Collector[Any] = (
        QueryCollector(
            algorithm, envs, MemoryReplayBuffer("lser", CAPACITY), exploration_noise=True
        )
        if buffer == "lser"
        else Collector(algorithm, envs, VectorReplayBuffer(CAPACITY, 1), exploration_noise=True)
    )
    collector.reset()
    collector.collect(n_step=WARM_UP // 2, random=True)

    def train(steps: int) -> None:
        algorithm.run_training(
            OffPolicyTrainerParams(
                training_collector=collector,
                max_epochs=1,
                epoch_num_steps=steps,
                collection_step_num_env_steps=1,
                batch_size=BATCH,
                verbose=False,
                show_progress=False,
            )
        )

    return train


LIBRARIES = {
    "Stable-Baselines3": Library("stable_baselines3", sb3),
    "TorchRL": Library("torchrl", torchrl),
    "Tianshou": Library("tianshou", tianshou),
}


def measure(library: Library, steps: int, turns: int) -> dict[str, Any]:
    """Steps per second of both buffers over `turns` of `steps`, and their ratio."""
    trainers: dict[Buffer, Trainer] = {
        "uniform": library.trainer("uniform"),
        "lser": library.trainer("lser"),
    }
    rates: dict[Buffer, list[float]] = {buffer: [] for buffer in trainers}
    for trainer in trainers.values():
        trainer(WARM_UP)
    for turn in range(turns):
        for buffer in list(trainers)[:: 1 if turn % 2 else -1]:  # neither always goes first
            start = time.process_time()
            trainers[buffer](steps)
            rates[buffer].append(steps / (time.process_time() - start))
    pairs = zip(rates["lser"], rates["uniform"], strict=True)
    ratio = statistics.median(ours / theirs for ours, theirs in pairs)
    return {"rates": rates, "ratio": ratio, "target": TARGET, "met": ratio >= TARGET}


def table(rows: dict[str, dict[str, Any]]) -> str:
    """The results as Markdown."""
    lines = [
        f"| library | its own uniform, steps/s | LSER, steps/s | ratio, >= {TARGET} |",
        "|---|---|---|---|",
    ]
    for name, row in rows.items():
        if "skipped" in row:
            lines.append(f"| {name} | {row['skipped']} | | |")
            continue
        uniform, locality = (statistics.median(row["rates"][b]) for b in ("uniform", "lser"))
        verdict = "met" if row["met"] else "MISSED"
        lines.append(
            f"| {name} | {uniform:,.0f} | {locality:,.0f} | {row['ratio']:.2f} {verdict} |"
        )
    return "\n".join(lines)


def main() -> int:
    """Measure, print, write; the exit code says whether every target is met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100, help="environment steps of one turn")
    parser.add_argument("--turns", type=int, default=25, help="the buffers alternate so often")
    parser.add_argument("--only", choices=LIBRARIES, action="append", help="libraries")
    parser.add_argument("--output", type=Path, default=ROOT / "results" / "speed_adapters.json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows: dict[str, dict[str, Any]] = {}
    for name in options.only or LIBRARIES:
        try:
            __import__(LIBRARIES[name].module)
        except ModuleNotFoundError:
            rows[name] = {"skipped": "not installed"}
            continue
        rows[name] = measure(LIBRARIES[name], options.steps, options.turns)
    sys.stdout.write(table(rows) + "\n")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(rows, indent=1) + "\n")
    return int(not all(row.get("met", True) for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
