"""One short run per memory, frozen: a redesign must leave the same records.

`python tests/experiments/test_golden.py` writes the data anew. Rounding differs between
processors, and a page may flip by it, so scores are compared to a part in a hundred.
"""

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from lser.experiments import records
from lser.experiments.presets import preset
from lser.experiments.run import run

DATA = Path(__file__).parents[1] / "golden" / "records.json"
MEMORIES = (
    *("lser", "uniform", "per", "der", "der-uniform", "aer", "ser", "her", "her-balanced"),
    *("lser-p", "lser-s", "reward-top", "random-code"),
)
RUNS = [(memory, "ddpg") for memory in MEMORIES] + [
    (memory, agent) for agent in ("td3", "sac") for memory in ("lser", "per")
]


def experiment(memory, agent="ddpg"):
    base = preset("bazaar", memory, agent, scale="quick")
    return replace(
        base,
        users=4,
        batch_size=32,
        capacity=400,
        sessions=80,
        evaluate_every=40,
        evaluate_sessions=40,
        final_sessions=80,
        seed=12,
    )


def outcome(memory, agent, folder):
    run(experiment(memory, agent), folder)
    record = records.load(folder)
    keys = ("sessions", "steps", "updates", "metric", "reward")
    points = [{k: point[k] for k in keys if k in point} for point in (*record.curve, record.final)]
    return {"points": points}


@pytest.mark.parametrize(("memory", "agent"), RUNS)
def test_a_short_run_leaves_the_frozen_record(memory, agent, tmp_path):
    expected = json.loads(DATA.read_text())[f"{memory}, {agent}"]["points"]
    found = outcome(memory, agent, tmp_path)["points"]
    assert len(found) == len(expected)
    for point, golden in zip(found, expected, strict=True):
        assert point == pytest.approx(golden, rel=1e-2, abs=1e-4)


if __name__ == "__main__":
    frozen = {}
    for memory, agent in RUNS:
        with tempfile.TemporaryDirectory() as folder:
            frozen[f"{memory}, {agent}"] = outcome(memory, agent, Path(folder))
    DATA.write_text(json.dumps(frozen, indent=1) + "\n")
