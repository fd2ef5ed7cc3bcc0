"""Off-policy estimates against what the world itself says."""

import numpy as np
import pytest
from shops import hand_clock, quick

from lser.online import Recommender
from lser.online.estimates import evaluate
from lser.online.policies import RandomPolicy, TowerPolicy
from lser.online.sqlite_reader import SqliteReader

DIM = 3
RATES = np.array([0.05, 0.1, 0.2, 0.3, 0.5, 0.7])


def toward(direction):
    """A policy that wants items in one direction, whoever asks."""
    linear = np.zeros((2 * DIM + 7, DIM), np.float32)
    linear[-1] = direction
    return TowerPolicy({"linear": linear})


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Random pages of 2 of 6 items; each item has its own rate."""
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((6, DIM)).astype(np.float32)
    folder = tmp_path_factory.mktemp("estimates") / "shop"
    settings = quick(
        arms=(("random", 1.0),), k=2, candidates=6, temperature=0.7, random_share=0.1, window=0.05
    )
    with (
        hand_clock() as hands,
        Recommender(vectors, folder, settings=settings, learner="off") as shop,
    ):
        for number in range(1_500):
            page = shop.recommend(f"u{number}")
            hits = [item for item in page.items if rng.random() < RATES[int(item)]]
            if hits:
                shop.feedback(page.id, hits)
        hands.turn(0.1)
        shop.learn()
        truth = {}
        for name, policy in (("up", toward([1, 0, 0])), ("random", RandomPolicy())):
            total = 0.0
            for number in range(1_500):
                shop._policies["x", 1] = policy
                from lser.online.serving import choose

                books = shop.books
                choice = choose(
                    policy, np.zeros(2 * DIM + 6, np.float32), books.items, books.nearest,
                    shop.settings, k=2, mask=None, decision=f"{number}", visit="v",
                )  # fmt: skip
                total += RATES[choice.slate.rows].mean()
            truth[name] = total / 1_500
    return folder, truth


def test_estimates_are_near_the_truth_and_say_how_near(world):
    folder, truth = world
    reader = SqliteReader(folder)
    found = evaluate(reader, {"up": toward([1, 0, 0]), "random": RandomPolicy()})
    reader.close()
    for name, result in found.items():
        assert result.pages == 1_500
        for estimate in (result.ips, result.snips, result.doubly_robust):
            # exploration turns the direction a little in the truth, not in the estimate
            assert abs(estimate.value - truth[name]) < 4 * estimate.error + 0.02
            assert 0 < estimate.error < 0.05
    assert found["random"].effective == pytest.approx(1_500)
    assert found["random"].ips.value == pytest.approx(found["random"].logged)
    assert found["up"].effective < 1_500


def test_few_effective_samples_are_refused(world):
    reader = SqliteReader(world[0])
    found = evaluate(reader, {"up": toward([1, 0, 0])}, floor=1_400)["up"]
    reader.close()
    assert found.effective < 1_400
    assert found.ips is found.snips is found.doubly_robust is None
