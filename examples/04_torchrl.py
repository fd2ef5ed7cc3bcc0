"""LSER inside TorchRL: a sampler and a writer over one index, the data in TorchRL's storage.

pip install -e '.[torchrl]'; python examples/04_torchrl.py [steps]
"""

import sys

import gymnasium as gym
import torch
from tensordict.nn import TensorDictModule, TensorDictSequential
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
from torchrl.envs import GymWrapper
from torchrl.modules import MLP, AdditiveGaussianModule, TanhModule, ValueOperator
from torchrl.objectives import DDPGLoss, SoftUpdate

import lser  # noqa: F401  registers the simulators
from lser.adapters.torchrl import memory_pair

torch.set_num_threads(1)
torch.manual_seed(0)
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
dials = {"items": 200, "slate": 5, "features": 4, "demographics": (2, 4), "sparsity": 0.05}
env, visitors = (GymWrapper(gym.make("lser/Bazaar-v0", **dials)) for _ in range(2))
width, size = env.observation_spec["observation"].shape[0], env.action_spec.shape[0]
head = TensorDictModule(MLP(width, size, num_cells=[64, 64]), ["observation"], ["param"])
actor = TensorDictSequential(head, TanhModule(in_keys=["param"], out_keys=["action"]))
explore = TensorDictSequential(actor, AdditiveGaussianModule(env.action_spec, 0.3, 0.3))
critic = ValueOperator(MLP(width + size, 1, num_cells=[64, 64]), ["observation", "action"])
loss = DDPGLoss(actor, critic, delay_actor=True, delay_value=True)
loss.make_value_estimator(gamma=0.9)
targets, optim = SoftUpdate(loss, tau=0.01), torch.optim.Adam(loss.parameters(), 1e-3)

sampler, writer = memory_pair("lser-steady", 100_000, width, bits=6, greedy=0.5)
storage = LazyTensorStorage(100_000)
rb = TensorDictReplayBuffer(storage=storage, sampler=sampler, writer=writer, batch_size=64)

current = env.reset()
for _ in range(steps):
    if len(rb) >= 100:
        sampler.query = current["observation"]  # whom do we serve? then sample as ever
        losses = loss(rb.sample())
        optim.zero_grad()
        (losses["loss_actor"] + losses["loss_value"]).backward()
        optim.step()
        targets.step()
    with torch.no_grad():  # or the storage would keep the graph of every action
        transition, current = env.step_and_maybe_reset(explore(current))
    rb.extend(transition.unsqueeze(0))
sessions = [visitors.rollout(1_000, actor)["next", "reward"].sum().item() for _ in range(100)]
print(f"clicks per session after {steps:,} pages: {sum(sessions) / len(sessions):.2f}")
