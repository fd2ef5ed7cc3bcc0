"""What policies score in the worlds of G: random products, one for all, one's own, the oracle.

``python results/shops.py`` plays 20,000 users of each world that ``results/shops.json`` lacks, and
writes their expected CTR there. ``lser.experiments.studies.shops`` has the same numbers, and a test
holds them equal.
"""

import json
from collections.abc import Callable
from dataclasses import fields

import numpy as np
from committed import RESULTS

from lser.simulators.recogym import Params
from lser.simulators.recogym.simulator import RecoGym, Users
from lser.types import Float64, Int64

FILE = RESULTS / "shops.json"
WORLDS = range(42, 47)
USERS, NEAR = 20_000, 3  # people who visit; products that may be the best for everybody
Choice = Callable[[Users], Int64]


def play(shop: RecoGym, choose: Choice, seed: int) -> float:
    """The expected CTR of a policy."""
    rng = np.random.default_rng(seed)
    users, total, shown = shop.arrive(rng, USERS), 0.0, 0
    while users.last.size:
        outcome = shop.recommend(users, choose(users), rng)
        total += float(outcome.info["click_prob"].sum())
        shown += users.last.size
        users = Users(*(getattr(users, f.name)[~outcome.terminated] for f in fields(users)))
    return total / shown


def scores(world: int) -> dict[str, float]:
    """The expected CTR of every policy in a world."""
    shop = RecoGym(Params(random_seed=world))
    rng, products = np.random.default_rng(world), shop.params.num_products
    liked = np.zeros(products)

    def at_random(users: Users) -> Int64:
        probabilities: Float64 = shop.click_probabilities(users)
        liked[:] += probabilities.sum(axis=0)
        return rng.integers(products, size=users.last.size)

    found = {"random": play(shop, at_random, 1)}
    near = np.argsort(-liked)[:NEAR].tolist()
    found["constant"] = max(play(shop, _always(product), 2) for product in near)
    viewed = shop.arrive(np.random.default_rng(3), USERS).seen.sum(axis=0)
    found["popular"] = play(shop, _always(int(viewed.argmax())), 2)
    found["own"] = play(shop, lambda users: users.seen.argmax(axis=1), 4)
    found["oracle"] = play(shop, lambda users: shop.click_probabilities(users).argmax(axis=1), 5)
    return {name: round(score, 5) for name, score in found.items()}


def _always(product: int) -> Choice:
    return lambda users: np.full(users.last.size, product, np.int64)


def main() -> None:
    """Write the table."""
    rows = json.loads(FILE.read_text()) if FILE.exists() else []
    for world in WORLDS:
        if not any(row["world"] == world for row in rows):
            rows.append({"world": world, **scores(world)})
            lines = ",\n ".join(json.dumps(row) for row in rows)
            FILE.write_text(f"[\n {lines}\n]\n")


if __name__ == "__main__":
    main()
