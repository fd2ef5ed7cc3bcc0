"""LSER inside RLlib: another config class, the memory in its checkpoints.

pip install -e '.[rllib]'; python examples/09_rllib.py [steps]
"""

import sys
import tempfile

import gymnasium as gym
import ray
import torch
from ray.tune.registry import register_env

import lser  # noqa: F401  registers the simulators
from lser.adapters.rllib import LserSAC, LserSACConfig

torch.set_num_threads(1)
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000
dials = {"items": 200, "slate": 5, "features": 4, "demographics": (2, 4), "sparsity": 0.05}
register_env("bazaar", lambda config: gym.make("lser/Bazaar-v0", **config))
ray.init("local", num_cpus=1, include_dashboard=False, log_to_driver=False)

config = (
    LserSACConfig()
    .environment("bazaar", env_config=dials)
    .env_runners(num_env_runners=0, rollout_fragment_length=4)
    .training(train_batch_size_per_learner=64, num_steps_sampled_before_learning_starts=100)
    .reporting(min_sample_timesteps_per_iteration=steps // 2, min_time_s_per_iteration=0)
    .debugging(seed=0, log_level="ERROR")
    .replay("lser-steady", capacity=100_000, bits=6, greedy=0.5)
)
algorithm = config.build_algo()
algorithm.train()
with tempfile.TemporaryDirectory() as folder:
    again = LserSAC.from_checkpoint(algorithm.save_to_path(folder))
algorithm.stop()
result = again.train()  # goes on with the same memory
clicks = result["env_runners"]["episode_return_mean"]
held = len(again.local_replay_buffer)
print(f"clicks per session after {held:,} pages: {clicks:.2f}")
again.stop()
ray.shutdown()
