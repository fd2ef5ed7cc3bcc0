"""Steps per second of an original: ``python -m parity.rates NAME SECONDS`` prints the number."""

import importlib
import sys

RECSIM = ("interest_evolution", "long_term_satisfaction")


def step_rate(name: str, seconds: float) -> float:
    """The rate of the original of our module `name`: random actions, new users included."""
    if name in RECSIM:
        recsim = importlib.import_module("parity.recsim")
        return float(recsim.original_step_rate(name, seconds))
    return float(importlib.import_module(f"parity.{name}").original_step_rate(seconds))


if __name__ == "__main__":
    step_rate(sys.argv[1], 0.5)  # compiles and warms up
    sys.stdout.write(f"{step_rate(sys.argv[1], float(sys.argv[2]))}\n")
