"""Statistics on numbers worked by hand and against SciPy's."""

import numpy as np
import pytest
from scipy import stats as scipy_stats

from lser.report import stats


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_iqm_drops_a_quarter_on_each_side() -> None:
    assert stats.iqm([0.0, 1.0, 2.0, 3.0, 100.0]) == 2.0
    assert stats.iqm([8, 1, 2, 3, 4, 5, 6, 7]) == (3 + 4 + 5 + 6) / 4
    assert stats.iqm([1.0, 2.0, 6.0]) == 3.0


def test_iqm_of_nothing_names_the_argument() -> None:
    with pytest.raises(ValueError, match="scores is empty"):
        stats.iqm([])


def test_mean_t_is_scipys_t_interval(rng: np.random.Generator) -> None:
    values = rng.normal(size=5)
    low, high = scipy_stats.t.interval(0.95, 4, values.mean(), scipy_stats.sem(values))
    np.testing.assert_allclose(stats.mean_t(values), (values.mean(), low, high))


def test_mean_t_on_worked_numbers() -> None:
    # mean 3, s 1.5811, t(.975, 4) 2.776445: half width 1.963243
    np.testing.assert_allclose(stats.mean_t([1, 2, 3, 4, 5]), (3, 1.036757, 4.963243), atol=1e-6)


def test_one_seed_has_no_interval(rng: np.random.Generator) -> None:
    for interval in (stats.mean_t([0.4]), stats.bootstrap([[0.4]], rng)):
        assert interval.estimate == 0.4
        assert np.isnan([interval.low, interval.high]).all()
        assert not interval.excludes_zero


def test_bootstrap_of_the_mean_agrees_with_theory(rng: np.random.Generator) -> None:
    values = rng.normal(2.0, 1.0, size=400)
    found = stats.bootstrap(
        [values], rng, statistic=lambda s: np.asarray(s[0].mean(axis=-1)), repetitions=4000
    )
    half = 1.96 * values.std() / 20
    np.testing.assert_allclose(
        found, (values.mean(), values.mean() - half, values.mean() + half), atol=0.01
    )


def test_bootstrap_agrees_with_scipys_percentile_bootstrap(rng: np.random.Generator) -> None:
    values = rng.gamma(2.0, size=12)
    theirs = scipy_stats.bootstrap(
        (values,),
        lambda x, axis: scipy_stats.trim_mean(x, 0.25, axis=axis),
        n_resamples=20_000,
        method="percentile",
        rng=np.random.default_rng(1),
    ).confidence_interval
    ours = stats.bootstrap([values], rng, repetitions=20_000)
    np.testing.assert_allclose((ours.low, ours.high), (theirs.low, theirs.high), atol=0.03)


def test_strata_are_redrawn_within_themselves(rng: np.random.Generator) -> None:
    # Two strata without spread: any redraw within them gives the same pooled score.
    found = stats.bootstrap([[0.0] * 4, [1.0] * 4], rng)
    assert found == (0.5, 0.5, 0.5)


def test_the_same_rng_gives_the_same_interval() -> None:
    values = np.random.default_rng(3).normal(size=6)
    first, second = (stats.bootstrap([values], np.random.default_rng(9)) for _ in range(2))
    assert first == second


def test_curves_are_redrawn_as_whole_runs(rng: np.random.Generator) -> None:
    curves = np.array([[0.0, 1.0, 2.0], [1.0, 2.0, 3.0], [2.0, 3.0, 4.0], [3.0, 4.0, 5.0]])
    centre, low, high = stats.bootstrap_curves(curves, rng)
    np.testing.assert_allclose(centre, [1.5, 2.5, 3.5])
    # Runs are parallel, so the band has one width everywhere.
    np.testing.assert_allclose(high - low, (high - low)[0])
    assert (low < centre).all()
    assert (centre < high).all()


def test_a_single_curve_has_no_band(rng: np.random.Generator) -> None:
    centre, low, high = stats.bootstrap_curves([[0.1, 0.2]], rng)
    np.testing.assert_array_equal(centre, [0.1, 0.2])
    assert np.isnan(low).all()
    assert np.isnan(high).all()


def test_improvement_counts_pairs_and_half_of_ties() -> None:
    # 3 > {1, 2}; 2 > 1 and ties 2: (2 + 1.5) of 4
    assert stats.improvement([np.array([3.0, 2.0]), np.array([1.0, 2.0])]) == 3.5 / 4


def test_improvement_is_mann_whitneys_u_over_nm(rng: np.random.Generator) -> None:
    x, y = rng.integers(0, 9, 7).astype(float), rng.integers(0, 9, 5).astype(float)
    u = scipy_stats.mannwhitneyu(x, y).statistic
    assert stats.improvement([x, y]) == pytest.approx(u / 35)


def test_probability_of_improvement_averages_strata(rng: np.random.Generator) -> None:
    always, never = ([2.0, 3.0], [0.0, 1.0]), ([0.0, 1.0], [2.0, 3.0])
    assert stats.probability_of_improvement([always, never], rng) == (0.5, 0.5, 0.5)
    found = stats.probability_of_improvement([([1.0, 4.0, 6.0], [2.0, 3.0, 5.0])], rng)
    assert found.estimate == pytest.approx(5 / 9)
    assert 0 <= found.low < 5 / 9 < found.high <= 1


def test_paired_differences_use_the_seeds_both_have() -> None:
    difference = stats.paired_difference({3: 0.9, 1: 0.5, 7: 1.0}, {1: 0.25, 3: 0.5, 2: 0.0})
    np.testing.assert_allclose(difference, [0.25, 0.4])


def test_clopper_pearson_on_published_numbers() -> None:
    # 0 of 10: the upper end is 1 - .025 ** (1 / 10)
    np.testing.assert_allclose(stats.clopper_pearson(0, 10), (0, 0, 1 - 0.025**0.1))


def test_more_successes_than_runs_is_refused() -> None:
    with pytest.raises(ValueError, match="successes=6"):
        stats.clopper_pearson(6, 5)


def test_first_at_or_above_is_censored_at_the_end() -> None:
    sessions, scores = [10, 20, 30], [0.1, 0.5, 0.4]
    assert stats.first_at_or_above(sessions, scores, 0.5) == (20.0, True)
    assert stats.first_at_or_above(sessions, scores, 0.9) == (30.0, False)


def test_censored_median_follows_kaplan_and_meier() -> None:
    assert stats.censored_median([1, 2, 3], [True, True, True]) == 2
    assert stats.censored_median([5, 5, 5, 2], [False, False, False, True]) == float("inf")
    # At 1: 4/5 stay. Censored at 2. At 3: 4/5 * 2/3 = .533. At 4: .267 <= .5.
    assert stats.censored_median([1, 2, 3, 4, 9], [True, False, True, True, False]) == 4


def test_area_under_the_curve_is_its_average_height() -> None:
    assert stats.area_under_curve([0, 10, 30], [0.0, 1.0, 1.0]) == (5 + 20) / 30
    assert stats.area_under_curve([10], [0.7]) == 0.7
    with pytest.raises(ValueError, match="must match"):
        stats.area_under_curve([1, 2], [0.5])


def test_the_paired_p_is_scipys(rng: np.random.Generator) -> None:
    values = rng.normal(0.4, 1.0, 9)
    assert stats.paired_p(values) == pytest.approx(scipy_stats.ttest_1samp(values, 0).pvalue)
    assert stats.paired_p([0.0, 0.0]) == 1.0
    assert stats.paired_p([0.5, 0.5]) == 0.0
    assert np.isnan(stats.paired_p([0.5]))


def test_welchs_interval_is_scipys_and_none_for_one_run(rng: np.random.Generator) -> None:
    x, y = rng.normal(1.0, 1.0, 8), rng.normal(0.0, 2.0, 5)
    ends = scipy_stats.ttest_ind(x, y, equal_var=False).confidence_interval(0.95)
    np.testing.assert_allclose(stats.welch(x, y), (x.mean() - y.mean(), ends.low, ends.high))
    assert np.isnan(stats.welch([1.0], y).low)


def test_holm_on_worked_numbers() -> None:
    # .01 * 4, .02 * 3, .03 * 2, .04 * 1 raised to what came before
    np.testing.assert_allclose(stats.holm([0.04, 0.01, 0.03, 0.02]), [0.06, 0.04, 0.06, 0.06])
    assert stats.holm([0.6, 0.9]) == [1.0, 1.0]
    assert stats.holm([]) == []


def test_holm_leaves_out_what_is_no_test() -> None:
    found = stats.holm([0.02, float("nan"), 0.5])
    assert found[0] == 0.04
    assert np.isnan(found[1])
