"""VirtualTaobao beside the release: fresh seeds, the same actions, the same distributions.

The release (github.com/eyounx/VirtualTaobao) is in no package registry. Where its package
``virtualTB`` is importable it is the reference; otherwise `StandIn` is: the networks as torch
modules on one row per step and the draws by ``torch.multinomial``, as the release works, written
from its description. Run ``python parity/virtual_taobao.py``; the exit code says whether all agree.
"""

import importlib
import importlib.util
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from lser.simulators.virtual_taobao.simulator import ACTION, FEATURES, VirtualTaobaoVectorEnv
from lser.simulators.virtual_taobao.weights import LAYERS, find_weights

THRESHOLD = 4.0  # |z| per comparison; a dozen comparisons, so a false alarm once in 1,300 runs
Array = NDArray[Any]


class Session(NamedTuple):
    """What one shopper did."""

    clicks: int
    pages: int


class StandIn:
    """A stand-in for the release's environment: torch on a single row, one user after another."""

    def __init__(self, tensors: list[dict[str, torch.Tensor]] | None = None) -> None:
        """The released networks, or those of `tensors`, one dict a network."""
        if tensors is None:
            folder = find_weights()
            tensors = [torch.load(folder / name, weights_only=True) for name in LAYERS]
        self.networks = [
            self._network(found, sizes)
            for found, sizes in zip(tensors, LAYERS.values(), strict=True)
        ]

    @staticmethod
    def _network(tensors: dict[str, torch.Tensor], sizes: tuple[int, ...]) -> torch.nn.Sequential:
        layers: list[torch.nn.Module] = []
        for before, after in pairwise(sizes):
            layers += [torch.nn.Linear(before, after), torch.nn.LeakyReLU()]
        network = torch.nn.Sequential(*layers[:-1])
        network.load_state_dict(tensors)
        return network

    def seed(self, seed: int) -> None:
        """Seed torch, as the release does."""
        torch.manual_seed(seed)

    def reset(self) -> Array:
        """A new user, one categorical feature after another."""
        generator, leave, _ = self.networks
        features = torch.split(generator(torch.rand(1, 128)), list(FEATURES), dim=1)
        user = torch.zeros(1, 0)
        for logits in features:
            chosen = torch.multinomial(torch.softmax(logits, dim=1), 1)
            one_hot = torch.zeros(logits.shape).scatter_(1, chosen, 1)
            user = torch.cat((user, one_hot), dim=-1)
        self.user = user.detach().numpy()[0]
        page = torch.multinomial(torch.softmax(leave(user), dim=1), 1)
        self.leave_page = int(page.item())
        self.clicks = self.pages = 0
        self.last = np.zeros(2, np.float32)
        return self._state()

    def step(self, action: Array) -> tuple[Array, int, bool, dict[str, float]]:
        """One page through the click model."""
        row = (self.user, [float(self.pages)], action)
        inputs = torch.cat([torch.FloatTensor(part).unsqueeze(0) for part in row], dim=-1)
        logits = self.networks[2](inputs)
        clicks = torch.multinomial(torch.softmax(logits[:, :11], dim=1), 1)
        index = torch.multinomial(torch.softmax(logits[:, 11:], dim=1), 1)
        self.last = torch.cat((clicks, index), dim=-1).detach().numpy()[0]
        reward = int(self.last[0])
        self.clicks += reward
        self.pages += 1
        done = self.pages >= self.leave_page
        return self._state(), reward, done, {"CTR": self.clicks / self.pages / 10}

    def _state(self) -> Array:
        return np.concatenate((self.user, self.last, [self.pages]), axis=-1)


def original() -> Any:
    """The release's environment where it is installed, the stand-in otherwise."""
    if importlib.util.find_spec("virtualTB") is None:
        return StandIn()
    return importlib.import_module("virtualTB.envs").VirtualTB()


def original_step_rate(seconds: float = 2.0) -> float:
    """Steps per second of the original with random actions, new users included."""
    torch.set_num_threads(1)
    env = original()
    actions = np.random.default_rng(0).uniform(-1, 1, (1024, ACTION)).astype(np.float32)
    env.reset()
    steps, start = 0, time.process_time()
    while time.process_time() - start < seconds:
        if env.step(actions[steps % 1024])[2]:
            env.reset()
        steps += 1
    return steps / (time.process_time() - start)


def original_sessions(count: int, seed: int, act: Callable[[], Array]) -> list[Session]:
    """Whole sessions on the original."""
    torch.manual_seed(seed)
    return sessions_of(original(), count, act)


def sessions_of(env: Any, count: int, act: Callable[[], Array]) -> list[Session]:
    """Whole sessions on `env`."""
    sessions = []
    for _ in range(count):
        env.reset()
        clicks, pages, done = 0, 0, False
        while not done:
            _, reward, done, _ = env.step(act())
            clicks += reward
            pages += 1
        sessions.append(Session(clicks, pages))
    return sessions


def our_sessions(count: int, seed: int, act: Callable[[], Array]) -> list[Session]:
    """Whole sessions on ours: the first of each of `count` users side by side."""
    env = VirtualTaobaoVectorEnv(count)
    env.reset(seed=seed)
    clicks, pages = np.zeros(count), np.zeros(count)
    running = np.ones(count, bool)
    while running.any():
        _, reward, done, _, _ = env.step(np.stack([act() for _ in range(count)]))
        clicks += reward * running
        pages += running
        running &= ~done
    return [Session(int(c), int(p)) for c, p in zip(clicks, pages, strict=True)]


def ctr(sessions: list[Session]) -> tuple[float, float]:
    """Clicks per item shown and its standard error over users (delta method)."""
    clicks, pages = np.array(sessions, float).T
    ratio = clicks.sum() / pages.sum()
    error = np.std(clicks - ratio * pages) / pages.mean() / np.sqrt(len(pages))
    return ratio / 10, error / 10


def mean_pages(sessions: list[Session]) -> tuple[float, float]:
    """Pages per session and its standard error."""
    pages = np.array(sessions, float)[:, 1]
    return pages.mean(), pages.std() / np.sqrt(len(pages))


def compare(count: int = 1500, seed: int | None = None) -> list[dict[str, Any]]:
    """Rows of (policy, metric, ours, original, z) on fresh seeds."""
    root = np.random.default_rng(seed)
    constant = root.uniform(-1, 1, (3, ACTION)).astype(np.float32)
    policies: dict[str, Callable[[], Array]] = {
        "uniform": lambda: root.uniform(-1, 1, ACTION).astype(np.float32),
        "zero": lambda: np.zeros(ACTION, np.float32),
    }
    policies |= {f"constant {i}": partial(np.copy, a) for i, a in enumerate(constant)}
    rows = []
    for name, act in policies.items():
        ours = our_sessions(count, int(root.integers(2**31)), act)
        theirs = original_sessions(count, int(root.integers(2**31)), act)
        for metric in (ctr, mean_pages):
            (a, sa), (b, sb) = metric(ours), metric(theirs)
            z = (a - b) / max(np.hypot(sa, sb), 1e-3 / count)
            rows.append(
                {"policy": name, "metric": metric.__name__, "ours": a, "original": b, "z": z}
            )
    return rows


def main() -> int:
    """Print the comparison and tell by the exit code whether every |z| is under the threshold."""
    rows = compare()
    kind = type(original()).__name__
    sys.stdout.write(f"VirtualTaobao beside {kind}\n")
    for row in rows:
        sys.stdout.write(json.dumps(row, default=float) + "\n")
    return int(any(abs(row["z"]) >= THRESHOLD for row in rows))


if __name__ == "__main__":
    sys.exit(main())
