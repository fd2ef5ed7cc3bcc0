"""The known scores that results are scaled by are those that the simulators compute."""

import pytest

from lser.catalogue import SIMULATORS
from lser.experiments.studies import scale_of

CASES = [
    ("bazaar", "ctr", {}),
    ("bazaar", "ctr", {"sparsity": 0.01, "state_dependence": 1.0}),
    ("bazaar", "ctr", {"sparsity": 0.05, "state_dependence": 0.0}),
    ("interest-evolution", "quality", {}),
    ("long-term-satisfaction", "reward_per_step", {}),
    ("recogym", "ctr", {}),
]


@pytest.mark.parametrize(("name", "metric", "dials"), CASES)
def test_a_scale_ends_where_the_simulators_anchors_are(name, metric, dials):
    params = SIMULATORS[name].params(**dials)
    random, best = SIMULATORS[name].load().simulator_type(params).anchors()
    scale = scale_of({"simulator": {"name": name, **vars(params)}}, metric)
    assert scale.random.score == pytest.approx(random.score, rel=0.02)
    assert scale.best.score == pytest.approx(best.score, rel=0.02)
