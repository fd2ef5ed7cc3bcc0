"""A shop that learns from clicks: recommend, take feedback, stop, and go on.

python examples/08_online_shop.py [pages]
"""

import sys
import tempfile
import time

import numpy as np

import lser
from lser.online import Settings

pages = int(sys.argv[1]) if len(sys.argv) > 1 else 3_000
rng = np.random.default_rng(0)
vectors = rng.standard_normal((500, 8)).astype(np.float32)  # 500 items
visitors = rng.standard_normal((50, 3))  # what we know about each visitor
taste = visitors @ rng.standard_normal((3, 8))  # what we do not: which items they like


def visit(shop: lser.Recommender, count: int) -> float:
    """So many pages of five items, with their clicks; returns clicks per item shown."""
    clicks = 0
    for number in range(count):
        user = int(rng.integers(50))
        page = shop.recommend(f"visitor {user}", visitors[user], k=5)
        liked = [item for item in page.items if vectors[int(item)] @ taste[user] > 6]
        if liked:
            shop.feedback(page.id, clicks=liked)
        clicks += len(liked)
        if number % 100 == 99:
            time.sleep(0.05)  # a real shop is not asked without pause
    return clicks / (5 * count)


settings = Settings(window=1.0, publish_every=0.5, cold="none", learning_starts=50)
with tempfile.TemporaryDirectory() as folder:
    with lser.Recommender(vectors, log=folder, features=3, settings=settings) as shop:
        print(f"at first:        {visit(shop, pages // 10):.3f} of the items shown are clicked")
        visit(shop, pages)
    with lser.Recommender.open(folder) as shop:  # another day
        time.sleep(1.5)
        print(f"{pages:,} pages later: {visit(shop, pages // 10):.3f}")
        for arm, policies in shop.books.arms.versions.items():
            print(f"{arm} has published {policies.current} policies")
