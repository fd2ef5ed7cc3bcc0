"""Load files that may be forged, and use what loads: ``python -m drill.loading FILE...``.

A process of its own: a crash of the interpreter is its exit status. What loads must work; what does
not must say so as a ValueError (or that memory is short).
"""

import sys
import warnings
from pathlib import Path

import numpy as np

from drill.samples import use
from lser import files
from lser.agents.saved import load_agent
from lser.cli.check import findings
from lser.replay import load_replay
from lser.testing.subject import ACTION, OBSERVATION
from lser.training import checkpoint

REFUSED = (ValueError, MemoryError, OSError)


def load_and_use(path: Path) -> str:
    """How it went: refused, or used."""
    try:
        kind, _ = files.load(path)
    except REFUSED:
        return "refused"
    try:
        if kind == "checkpoint":
            checkpoint.load(path)
        elif kind[:1].isupper():
            agent = load_agent(path)
            agent.act(np.zeros((3, agent.observation_dim), np.float32), explore=True)
        else:
            memory = load_replay(path)
            sizes = memory.store.observation_dim, memory.store.action_dim
            if memory.capacity > 10**6 or sizes != (OBSERVATION, ACTION):
                return "used"  # whole, but of another size than our traffic
            use(memory, 6, seed=2)
            use(load_replay(path), 1)
    except REFUSED:
        return "refused"
    return "used"


def main(paths: list[str]) -> int:
    warnings.simplefilter("ignore")
    counts = {"refused": 0, "used": 0}
    for path in paths:
        print(path, file=sys.stderr, flush=True)  # the last one named is the one that crashed
        counts[load_and_use(Path(path))] += 1
        list(findings(Path(path)))
    print(counts["refused"], counts["used"])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
