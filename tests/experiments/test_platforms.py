"""The known scores that results are scaled by are those that the simulators compute."""

import pytest

from lser.catalogue import SIMULATORS
from lser.experiments.studies import REWARD, mean_scale, scale_of

CASES = [
    ("bazaar", "ctr", {}),
    ("bazaar", "ctr", {"sparsity": 0.01, "state_dependence": 1.0}),
    ("bazaar", "ctr", {"sparsity": 0.05, "state_dependence": 0.0}),
    ("bazaar", "ctr", {"state_dependence": 0.75, "patience": 9.0, "world_seed": 2}),
    ("bazaar", "ctr", {"state_dependence": 0.75, "drift": 0.2, "world_seed": 1}),
    ("interest-evolution", "quality", {}),
    ("long-term-satisfaction", "reward_per_step", {"sensitivity": 0.1}),
    ("long-term-satisfaction", "reward_per_step", {}),
    ("recogym", "ctr", {}),
    ("recogym", "ctr", {"random_seed": 45, "reward_scale": 50.0}),
]


@pytest.mark.parametrize(("name", "metric", "dials"), CASES)
def test_a_scale_ends_where_the_simulators_anchors_are(name, metric, dials):
    params = SIMULATORS[name].params(**dials)
    random, best = SIMULATORS[name].load().simulator_type(params).anchors()
    scale = scale_of({"simulator": {"name": name, **vars(params)}}, metric)
    assert scale.random.score == pytest.approx(random.score, rel=0.02)
    assert scale.best.score == pytest.approx(best.score, rel=0.02)


def test_the_reward_has_a_scale_only_where_it_is_what_was_measured():
    params, world = SIMULATORS["interest-evolution"].params, {"name": "interest-evolution"}
    watched, paid, other = (
        scale_of({"simulator": {**world, **vars(params(**dials))}}, REWARD)
        for dials in ({}, {"reward": "quality"}, {"num_candidates": 10})
    )
    assert watched.best.score == 2.88
    assert paid.best.score == 1.17
    assert other is None
    shop = {"name": "recogym"}
    plain, scaled = (
        scale_of({"simulator": {**shop, "reward_scale": factor}}, REWARD) for factor in (1.0, 50.0)
    )
    assert scaled.best.score == pytest.approx(50 * plain.best.score, rel=0.01)  # both simulated


def test_the_scale_of_several_worlds_is_their_mean():
    worlds = [{"name": "bazaar", "sparsity": 0.02, "world_seed": seed} for seed in range(2)]
    dials = {"state_dependence": 0.75}
    scales = [scale_of({"simulator": {**world, **dials}}, "ctr") for world in worlds]
    mean = mean_scale(scales)
    assert mean.best.score == pytest.approx(sum(scale.best.score for scale in scales) / 2)
    assert mean.constant.score == pytest.approx(sum(scale.constant.score for scale in scales) / 2)
    assert len(mean.others) == len(scales[0].others)
