"""Small shops for the tests: a catalogue, settings that act fast, and shoppers with a taste."""

import contextlib
import time

import numpy as np
import pytest

from lser.online import Settings
from lser.online.log import Clock

QUICK = {"window": 0.2, "publish_every": 0.1, "session_timeout": 5.0, "cold": "none"}


class Hands:
    """The clock of all logs here: it moves a little with every look, and by what a test says."""

    step = 0.0005  # seconds

    def __init__(self):
        self.now = time.time()

    def __call__(self, _clock=None):
        self.now += self.step
        return self.now

    def turn(self, seconds):
        self.now += seconds


@contextlib.contextmanager
def hand_clock():
    """Logs whose time does not pass by itself: a machine that pauses makes no click late."""
    hands = Hands()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Clock, "__init__", lambda self, *_: None)
        patch.setattr(Clock, "__call__", lambda self: hands())
        yield hands


def catalogue(items=60, dim=4, seed=0):
    return np.random.default_rng(seed).standard_normal((items, dim)).astype(np.float32)


def quick(**changes):
    return Settings(**{**QUICK, "learning_starts": 20, "batch_size": 16, **changes})


class Shoppers:
    """Visitors whose two features decide which items they click."""

    def __init__(self, vectors, seed=0):
        rng = np.random.default_rng(seed)
        self.vectors = vectors
        self.map = rng.standard_normal((2, vectors.shape[1]))
        self.features = rng.standard_normal((40, 2))

    def clicks(self, user, items):
        taste = self.features[user] @ self.map
        return [item for item in items if item.isdigit() and self.vectors[int(item)] @ taste > 3]


def visit(recommender, shoppers, pages, start=0):
    """So many pages with their feedback; returns the clicks on each."""
    found = []
    for number in range(start, start + pages):
        user = number % 40
        page = recommender.recommend(f"u{user}", shoppers.features[user], 5, id=f"page {number}")
        clicked = shoppers.clicks(user, page.items)
        if clicked:
            recommender.feedback(page.id, clicked)
        found.append(len(clicked))
    return found
