"""Every memory learns: with DDPG on a small Bazaar it clearly beats random actions."""

from dataclasses import replace

import pytest

from lser.catalogue import AGENTS, MEMORIES, SIMULATORS
from lser.experiments import records
from lser.experiments.presets import preset
from lser.experiments.run import run

RANDOM = 0.05  # CTR of random actions, by calibration


@pytest.mark.slow
@pytest.mark.parametrize("memory", MEMORIES)
def test_a_memory_learns_to_recommend(memory, tmp_path):
    world = SIMULATORS["bazaar"].params(
        items=200, sparsity=RANDOM, state_dependence=0.25, demographics=(2, 3)
    )
    experiment = replace(
        preset("bazaar", memory, "ddpg", scale="quick"),
        simulator=world,
        agent=AGENTS["ddpg"].params(noise_scale=0.6, actor_lr=5e-4),
        sessions=250,
        evaluate_every=250,
        final_sessions=200,
    )
    run(experiment, tmp_path)
    final = records.load(tmp_path).final
    assert final["metric"] - 3 * final["metric_se"] > 2 * RANDOM
