"""Recorded logs, and learners run over them to the end."""

import shutil

import numpy as np
from shops import Shoppers, catalogue, hand_clock, quick, visit

from lser.online import Recommender
from lser.online.folder_store import FolderShelf
from lser.online.learning import Learning
from lser.online.log import Entry
from lser.online.sqlite_reader import SqliteReader

ARMS = (("lser", 0.4), ("lser-ddpg", 0.2), ("bandit", 0.2), ("popular", 0.2))


class Nowhere:
    """An outbox that keeps what is sent."""

    def __init__(self):
        self.sent = []

    def send(self, kind, id, body):
        self.sent.append((kind, id, body))


def recorded(folder, pages=240, **settings):
    """A log of visits, without anything learned."""
    chosen = quick(arms=ARMS, session_timeout=0.5, snapshot_every=0.15, **settings)
    shoppers = Shoppers(catalogue())
    with (
        hand_clock() as hands,
        Recommender(catalogue(), folder, features=2, settings=chosen, learner="off") as shop,
    ):
        for start in range(0, pages, 40):
            visit(shop, shoppers, 40, start=start)
            hands.turn(0.1)
        shop.put_items(["7", "new"], np.ones((2, 4)))
        visit(shop, shoppers, 20, start=pages)
        hands.turn(0.3)
        shop.log.append(Entry("tick", None, b"{}"))
    return folder


def bits(node):
    """Nested state as comparable values."""
    if isinstance(node, dict):
        return {key: bits(value) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [bits(value) for value in node]
    if hasattr(node, "numpy"):
        node = node.numpy()
    if isinstance(node, np.ndarray):
        return (str(node.dtype), node.shape, node.tobytes())
    return node


def state(learning):
    parts = {name: bits(learner.state()) for name, learner in learning.learners.items()}
    return parts, learning.cursor, learning.pages, learning.versions, learning.joins.state()


def finish(folder, steps=500):
    reader = SqliteReader(folder)
    learning = Learning(FolderShelf(folder), reader, Nowhere(), own_pace=False)
    while learning.step(steps):
        pass
    found = state(learning)
    reader.close()
    return found


def copy(shop, folder):
    shutil.copytree(shop, folder / "shop")
    return folder / "shop"
