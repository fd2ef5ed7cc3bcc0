"""Evaluation: whole sessions, every one once, nothing of the training touched."""

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from worlds import counting

from lser.training.evaluate import evaluate, ratio


class Still:
    """An agent that always does the same."""

    def act(self, observation, *, explore=False):
        assert not explore
        return np.zeros((len(observation), 1), np.float32)


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_every_row_plays_one_whole_session(mode):
    result = evaluate(Still(), counting(mode), sessions=2, seed=0)
    assert result.length == pytest.approx(2.5)  # two pages and three
    assert result.reward == pytest.approx((0.1 + 0.2 + 100.1 + 100.2 + 100.3) / 2, rel=1e-5)
    assert result.metric == pytest.approx((0.1 + 0.2 + 100.1 + 100.2 + 100.3) / 5, rel=1e-5)


def test_more_sessions_than_rows_come_in_waves():
    assert evaluate(Still(), counting(AutoresetMode.SAME_STEP), sessions=5, seed=0).sessions == 5


def test_the_ratio_s_standard_error_is_the_delta_method_s():
    rng = np.random.default_rng(0)
    shown = rng.integers(1, 20, size=(4000, 50)).astype(float)
    clicks = rng.binomial(shown.astype(int), 0.3).astype(float)
    errors = [ratio(c, s)[1] for c, s in zip(clicks, shown, strict=True)]
    spread = np.std([ratio(c, s)[0] for c, s in zip(clicks, shown, strict=True)])
    assert np.mean(errors) == pytest.approx(spread, rel=0.05)


def test_nothing_shown_scores_nothing():
    assert ratio(np.zeros(3), np.zeros(3)) == (0.0, 0.0)


def test_no_sessions_are_refused():
    with pytest.raises(ValueError, match="sessions .* 0"):
        evaluate(Still(), counting(AutoresetMode.SAME_STEP), sessions=0, seed=0)


@pytest.mark.parametrize("sessions", [0, -3, 2.5])
def test_so_many_sessions_cannot_be_run(sessions):
    with pytest.raises(ValueError, match=f"sessions must be .*{sessions}"):
        evaluate(None, None, sessions=sessions)
