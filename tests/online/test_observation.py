import numpy as np
import pytest

from lser.online.observation import LAYOUT, MEMORY, Layout, Visitors

LAY = Layout(2, 3)


def test_the_layout_by_hand():
    visitors = Visitors(LAY, 10)
    shown = np.array([[1, 0, 0], [0, 1, 0]], np.float32)
    visitors.show("u", np.array([5, 6], np.float32), shown, 1, now=0.0)
    visitors.click("u", shown[:1], share=0.5)
    seen = visitors.observe("u", None, now=21_600.0)  # six o'clock
    assert len(seen) == LAY.width == 2 + 3 + 3 + 6
    np.testing.assert_allclose(seen[:2], [5, 6])
    np.testing.assert_allclose(seen[2:5], [MEMORY, 0, 0])
    np.testing.assert_allclose(seen[5:8], [MEMORY / 2, MEMORY / 2, 0])
    np.testing.assert_allclose(seen[8:12], [1 / 11, 1 / 11, 0.5, 6 / 7], rtol=1e-6)
    np.testing.assert_allclose(seen[12:], [1, 0], atol=1e-6)


def test_strangers_are_seen_by_their_features_and_the_time():
    seen = Visitors(LAY, 10).observe(None, np.array([1, 2], np.float32), now=0.0)
    assert seen.tolist() == [1, 2, *[0] * 10, 0, 1]


def test_the_one_unseen_longest_gives_way():
    visitors = Visitors(LAY, 3)
    for user in ("a", "b", "c"):
        visitors.show(user, None, np.ones((1, 3), np.float32), 1, now=1.0)
    visitors.show("a", None, np.ones((1, 3), np.float32), 1, now=2.0)
    visitors.show("d", None, np.ones((1, 3), np.float32), 1, now=3.0)
    assert visitors.find("b") is None
    assert len(visitors) == 3
    assert visitors.find("d").numbers[0] == 1  # not what was left in the row


def test_sessions_end_by_the_log_s_time():
    visitors = Visitors(LAY, 3)
    assert visitors.session("u", 0.0, timeout=10.0) == 1
    visitors.show("u", None, np.ones((1, 3), np.float32), 1, now=0.0)
    assert visitors.session("u", 10.0, timeout=10.0) == 1
    assert visitors.session("u", 10.1, timeout=10.0) == 2


def test_states_survive_saving_to_the_bit():
    rng = np.random.default_rng(0)
    visitors, order = Visitors(LAY, 20), rng.integers(40, size=200)
    for number, user in enumerate(order):
        vectors = rng.standard_normal((3, 3)).astype(np.float32)
        visitors.show(f"u{user}", None, vectors, 1, now=float(number))
        visitors.click(f"u{user}", vectors[:1], 0.3)
    twin = Visitors(LAY, 20)
    twin.load(visitors.state())
    for user in order:
        a, b = visitors.observe(f"u{user}", None, 300.0), twin.observe(f"u{user}", None, 300.0)
        np.testing.assert_array_equal(a, b)
    for made in (visitors, twin):  # and the same one gives way next
        made.show("new", None, np.ones((1, 3), np.float32), 1, now=1e3)
    assert list(visitors._row) == list(twin._row)


def test_another_layout_is_refused():
    with pytest.raises(ValueError, match=f"layout {LAYOUT + 1}"):
        Visitors(Layout(1, 1, LAYOUT + 1), 5)
