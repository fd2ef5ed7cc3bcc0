"""Pages are drawn with the probabilities that are logged: closed forms, and frequencies."""

from collections import Counter
from itertools import permutations

import numpy as np
import pytest

from lser.online import page_kernels as kernels
from lser.online.pages import draw, logits, mixture, plackett_luce, propensities, seed_of, uniform
from lser.online.serving import explored


def test_plackett_luce_by_hand():
    weights = np.log([5.0, 3.0, 2.0])
    assert plackett_luce(weights, np.array([1, 0, 2])) == pytest.approx([0.3, 5 / 7, 1.0])


def test_the_chances_of_all_pages_add_up_to_one():
    logit = np.random.default_rng(0).standard_normal(5)
    candidates = np.arange(5)
    for share in (0.0, 0.1, 1.0):
        total = sum(
            np.prod(propensities(np.array(page), candidates, logit, 7, share))
            for page in permutations(range(7), 3)
        )
        assert total == pytest.approx(1.0)


def test_the_mixture_by_hand():
    """Two items, one random page in five: the greedy draw takes the first with chance .9."""
    greedy, random = np.array([0.9, 1.0]), np.array([0.5, 1.0])
    assert mixture(greedy, random, 0.2) == pytest.approx([0.8 * 0.9 + 0.2 * 0.5, 1.0])
    # an item outside the candidates can only come from the random branch
    outside = mixture(np.array([0.9, 0.0]), np.array([0.25, 1 / 3]), 0.2)
    first = 0.8 * 0.9 + 0.2 * 0.25
    assert outside == pytest.approx([first, 0.2 * 0.25 / 3 / first])


def test_long_pages_do_not_underflow():
    chance = mixture(np.full(400, 1e-3), uniform(100_000, 400), 0.01)
    assert np.isfinite(chance).all()
    assert (chance > 0).all()


def test_great_differences_do_not_cancel():
    logit = np.array([0.0, -200.0, -201.0])
    chance = plackett_luce(logit, np.array([0, 1]))
    assert chance == pytest.approx([1.0, 1 / (1 + np.exp(-1))])


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_pages_have_the_frequencies_that_are_logged(share):
    live = np.array([True, True, False, True, True, True])
    candidates, scores = np.array([0, 3, 4]), np.array([1.0, 0.5, 0.2], np.float32)
    rng = np.random.default_rng(0)
    counts: Counter[tuple[int, ...]] = Counter()
    logged = {}
    draws = 20_000
    for _ in range(draws):
        slate = draw(
            int(rng.integers(2**63)), candidates, scores, 2,
            temperature=1.0, random_share=share, eligible=5, live=live,
        )  # fmt: skip
        page = tuple(slate.rows.tolist())
        counts[page] += 1
        logged.setdefault(page, float(np.prod(slate.propensities)))
    assert sum(logged.values()) == pytest.approx(1.0)  # every possible page turned up
    for page, chance in logged.items():
        deviation = np.sqrt(chance * (1 - chance) / draws)
        assert abs(counts[page] / draws - chance) < 5 * deviation, page


def test_random_pages_are_uniform_in_both_ways_of_drawing_them():
    for rows, live_rows in ((8, 8), (40, 8)):  # dense: reject; sparse: permute
        live = np.zeros(rows, bool)
        live[:live_rows] = True
        rng = np.random.default_rng(1)
        counts = Counter(
            tuple(
                draw(
                    int(rng.integers(2**63)), np.zeros(0, np.int64), np.zeros(0, np.float32), 1,
                    temperature=1.0, random_share=0.0, eligible=live_rows, live=live,
                ).rows.tolist()
            )
            for _ in range(8_000)
        )  # fmt: skip
        assert len(counts) == 8
        assert max(abs(count - 1_000) for count in counts.values()) < 160


def test_a_page_is_as_long_as_there_are_items():
    slate = draw(
        7, np.array([1]), np.ones(1, np.float32), 5,
        temperature=1.0, random_share=0.0, eligible=3, live=np.array([True, True, True]),
    )  # fmt: skip
    assert sorted(slate.rows.tolist()) == [0, 1, 2]
    assert np.prod(slate.propensities) == pytest.approx(1 / 6)


def test_nothing_eligible_is_an_empty_page():
    slate = draw(
        7, np.zeros(0, np.int64), np.zeros(0, np.float32), 5,
        temperature=1.0, random_share=0.1, eligible=0, live=np.zeros(3, bool),
    )  # fmt: skip
    assert len(slate.rows) == len(slate.propensities) == 0


def test_the_scale_of_item_vectors_does_not_matter():
    scores = np.array([3.0, 1.0, 0.5], np.float32)
    assert logits(scores, 0.3) == pytest.approx(logits(100 * scores + 7, 0.3), rel=1e-5)
    assert logits(np.ones(3, np.float32), 0.3).tolist() == [0, 0, 0]


def test_a_seed_is_a_function_of_its_texts():
    assert seed_of("a", "b") == seed_of("a", "b")
    assert seed_of("a", "b") != seed_of("ab")


def test_the_compiled_draw_agrees_with_numpy():
    rng = np.random.default_rng(2)
    for _ in range(50):
        count = int(rng.integers(1, 30))
        scores = rng.standard_normal(count).astype(np.float32)
        logit = logits(scores, 0.4)
        np.testing.assert_allclose(kernels.logits(scores, 0.4), logit, rtol=1e-5, atol=1e-7)
        k, share = int(rng.integers(1, count + 1)), float(rng.choice([0.0, 0.02, 0.5, 1.0]))
        rows = rng.permutation(count + 3)[:k]
        chosen = np.where(rows < count, rows, -1)
        if share == 0.0 and (chosen < 0).any():
            continue
        expected = propensities(rows, np.arange(count), logit, count + 3, share)
        got = kernels.chances(logit, chosen, count + 3, share)
        np.testing.assert_allclose(got, expected, rtol=1e-9)


def test_the_noise_of_a_visit_is_normal_and_its_own():
    direction = np.arange(20, dtype=np.float32)
    unit = direction / np.linalg.norm(direction)
    np.testing.assert_allclose(explored(direction, 0.0), unit, rtol=1e-5)
    noise = np.concatenate([explored(direction, 0.5, f"{n}") - unit for n in range(500)])
    assert abs(noise.mean()) < 0.005
    assert noise.std() == pytest.approx(0.5 / np.sqrt(20), rel=0.03)
    assert (explored(direction, 0.5, "a") == explored(direction, 0.5, "a")).all()
    assert (explored(direction, 0.5, "a") != explored(direction, 0.5, "b")).all()


def test_the_coin_has_its_share():
    tossed = [bool(kernels.coin(np.uint64(seed_of(f"{n}")), 0.3)) for n in range(4_000)]
    assert abs(np.mean(tossed) - 0.3) < 0.04
    assert not kernels.coin(np.uint64(5), 0.0)
    assert kernels.coin(np.uint64(5), 1.0)


@pytest.mark.parametrize("count", [0, 1, 50])
def test_candidates_are_put_best_first_by_whole_numbers(count):
    rng = np.random.default_rng(count)
    vectors = rng.standard_normal((500, 8)).astype(np.float32)
    direction = rng.standard_normal(8).astype(np.float32)
    rows = rng.choice(500, count, replace=False)
    found, scores = kernels.best_first(vectors, rows, direction)
    by_score = rows[np.argsort(-(vectors[rows] @ direction), kind="stable")]
    np.testing.assert_array_equal(found, by_score)
    np.testing.assert_allclose(scores, vectors[by_score] @ direction, atol=1e-5)
