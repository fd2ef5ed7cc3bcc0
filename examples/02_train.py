"""Train an online recommender, watching its click rate as it learns.

python examples/02_train.py [steps]
"""

import sys
import time

import torch

import lser

torch.set_num_threads(1)  # the arrays are small: more threads only wait for each other
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 8_000

# Eight users at a time visit a shop of 1,000 items; an action ranks them for one user's page. The
# preset has what works there: a model of clicks that replays with LSER, steadied. DDPG, the
# paper's agent, is `lser.preset("bazaar", "lser-steady", "ddpg")`.
shop = lser.build(lser.preset("bazaar"))
random, best = lser.anchors(shop.experiment)
print(f"random actions {random.score:.3f}, best known {best.score:.3f}")
report, start = 0, time.perf_counter()

# `train` is a generator: it yields after every page shown, and the loop around it is yours. Which
# memory wins depends on the task and takes many seeds to tell: `lser compare lser-steady uniform
# --cure` does, with intervals.
for step in shop.train():
    if step.steps >= report:
        score = shop.evaluate(300)  # users that it was never trained on
        seconds = time.perf_counter() - start
        print(
            f"{step.steps:7,} pages, {step.sessions:6,} sessions, {seconds:4.0f} s: "
            f"CTR {score.metric:.3f} ± {score.metric_se:.3f}, "
            f"{score.length:.1f} pages a session"
        )
        report += max(1, steps // 8)
    if step.steps >= steps:
        break
