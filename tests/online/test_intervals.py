import numpy as np
import pytest

from lser.online.intervals import Tally, below, width


def test_the_sums_over_visitors_are_those_of_a_plain_count():
    rng = np.random.default_rng(0)
    tally, clicks, shown = Tally(), {}, {}
    for _ in range(500):
        user, hit = f"u{rng.integers(40)}", float(rng.integers(4))
        tally.add(user, hit, 10.0)
        clicks[user] = clicks.get(user, 0.0) + hit
        shown[user] = shown.get(user, 0.0) + 10
    c, n = np.array(list(clicks.values())), np.array(list(shown.values()))
    assert tally.visitors == len(c)
    assert tally.rate == pytest.approx(c.sum() / n.sum())
    residual = c - tally.rate * n
    deviation = np.sqrt((residual**2).mean()) / n.mean()
    interval = tally.interval()
    assert interval.high - interval.estimate == pytest.approx(width(len(c)) * deviation)


def test_there_is_no_interval_of_a_few_visitors():
    tally = Tally()
    for user in range(10):
        tally.add(f"{user}", 1.0, 10.0)
    assert np.isnan(tally.interval().low)
    assert not below(tally, tally)


def test_the_truth_stays_inside_at_all_times():
    """Looked at after every visitor, 95 % sequences lose the truth in at most 5 % of streams."""
    rng = np.random.default_rng(1)
    lost, streams = 0, 300
    for _ in range(streams):
        tally = Tally(capacity=10)
        for _user in range(400):
            taste = rng.beta(2, 8)  # visitors differ: pages of one belong together
            for _page in range(2):
                tally.add(f"{_user}", float(rng.binomial(10, taste)), 10.0)
            interval = tally.interval()
            if interval.low > 0.2 or interval.high < 0.2:
                lost += 1
                break
    assert lost / streams <= 0.05


def test_a_worse_arm_falls_below():
    rng = np.random.default_rng(2)
    good, bad = Tally(), Tally()
    for user in range(400):
        good.add(f"{user}", float(rng.binomial(10, 0.2)), 10.0)
        bad.add(f"{user}", float(rng.binomial(10, 0.1)), 10.0)
    assert below(bad, good)
    assert not below(good, bad)


def test_a_tally_survives_saving():
    tally, twin = Tally(), Tally()
    for user in range(50):
        tally.add(f"{user % 7}", 1.0, 10.0)
    twin.load(tally.state())
    for made in (tally, twin):
        made.add("3", 2.0, 10.0)
    assert tally == twin
