"""Encoders give the codes their definitions say, the same ones alone and in any block."""

import numpy as np
import pytest
from scipy import stats

from lser.replay import E2LSH, SimHash
from lser.replay.index.reference import code_of

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("bits", [1, 7, 8, 9, 20, 32])
def test_a_simhash_bit_is_the_sign_of_its_projection(bits):
    encoder = SimHash(5, bits=bits, seed=2)
    x = RNG.standard_normal((50, 5)).astype(np.float32)
    x[0] = 0
    assert encoder.hyperplanes.shape == (bits, 5)
    assert encoder.encode(x).tolist() == [
        code_of(encoder.hyperplanes.tolist(), s) for s in x.tolist()
    ]
    assert encoder.encode(x)[0] == 0


def test_an_observation_on_a_hyperplane_has_one_code_in_every_block():
    encoder = SimHash(91, bits=32, seed=0)
    planes = encoder.hyperplanes
    x = RNG.standard_normal((400, 91))
    for row in range(400):  # onto plane row % 32 but for rounding, where a matrix product wavers
        p = planes[row % 32]
        x[row] -= p * (x[row] @ p) / (p @ p)
    x = x.astype(np.float32)
    codes = encoder.encode(x)
    assert codes.tolist() == [int(encoder.encode(s[None])[0]) for s in x]
    assert codes[37:].tolist() == encoder.encode(x[37:]).tolist()


def test_hyperplanes_follow_their_seed():
    same = SimHash(4, bits=6, seed=1).hyperplanes
    np.testing.assert_array_equal(same, SimHash(4, bits=6, seed=1).hyperplanes)
    assert not np.array_equal(same, SimHash(4, bits=6, seed=2).hyperplanes)


def test_one_bit_collides_with_probability_one_minus_angle_over_pi():
    u, v = np.array([1.0, 0.0]), np.array([np.cos(1.0), np.sin(1.0)])
    encoders = (SimHash(2, bits=32, seed=s) for s in range(400))
    apart = sum(int(np.bitwise_xor(*e.encode([u, v])).bit_count()) for e in encoders)
    assert stats.binomtest(apart, 400 * 32, 1.0 / np.pi).pvalue > 1e-3


@pytest.mark.parametrize("features", ["centred", "standardised"])
def test_statistics_freeze_after_the_warm_up(features):
    encoder = SimHash(3, bits=8, seed=0, features=features, warmup=10)
    x = (RNG.standard_normal((40, 3)) * [1, 5, 0] + [10, -3, 2]).astype(np.float32)
    raw = SimHash(3, bits=8, seed=0)
    assert encoder.encode(x).tolist() == raw.encode(x).tolist()
    assert not encoder.observe(x[:4])
    assert not encoder.observe(x[4:4])
    assert encoder.observe(x[4:12])
    assert not encoder.observe(x[12:])
    seen = x[:12].astype(float)
    scale = np.where(seen.std(0) > 0, seen.std(0), 1) if features == "standardised" else 1
    moved = (x - seen.mean(0)) / scale
    assert (encoder.encode(x) == raw.encode(moved)).mean() > 0.95  # but for rounding to float32
    assert len(set(encoder.encode(x).tolist())) > len(set(raw.encode(x).tolist()))


@pytest.mark.parametrize("norm", [1, 2])
def test_cells_are_floors_of_shifted_projections(norm):
    encoder = E2LSH(4, functions=3, width=2.0, norm=norm, seed=5)
    x = RNG.standard_normal((30, 4)).astype(np.float32)
    arrays = encoder.state().arrays
    directions, offsets = arrays["encoder_planes"][:3], arrays["encoder_offsets"]
    want = np.floor((x.astype(float) @ directions.T + offsets) / 2.0)
    np.testing.assert_array_equal(encoder.cells(x), want)
    assert ((offsets >= 0) & (offsets < 2)).all()


def test_neighbouring_cells_differ_in_one_bit_of_the_code():
    encoder = E2LSH(1, functions=1, width=1.0, seed=0)
    step = 1 / abs(encoder.state().arrays["encoder_planes"][0, 0])
    x = (np.arange(200) * step * 0.25)[:, None]
    cells, codes = encoder.cells(x)[:, 0], encoder.encode(x)
    for k in range(199):
        apart = abs(int(cells[k + 1] - cells[k]))
        assert int(codes[k] ^ codes[k + 1]).bit_count() == apart <= 1


def test_one_e2lsh_function_collides_as_datar_says():
    width, distance = 4.0, 1.5
    hits = 0
    for seed in range(1500):
        cells = E2LSH(2, functions=8, width=width, seed=seed).cells([[0, 0], [distance, 0]])
        hits += int((cells[0] == cells[1]).sum())
    r = width / distance
    p = 1 - 2 * stats.norm.cdf(-r) - 2 / (np.sqrt(2 * np.pi) * r) * (1 - np.exp(-(r**2) / 2))
    assert stats.binomtest(hits, 1500 * 8, p).pvalue > 1e-3


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: SimHash(3, bits=0), "bits must be from 1 to 32, got 0"),
        (lambda: SimHash(3, bits=33), "bits must be from 1 to 32, got 33"),
        (lambda: SimHash(0), "observation_dim must be >= 1"),
        (lambda: SimHash(3, seed=-1), "seed must be >= 0"),
        (lambda: SimHash(3, features="scaled"), "features must be one of"),
        (lambda: SimHash(3, warmup=0), "warmup must be >= 1"),
        (lambda: E2LSH(3, width=0), "width must be finite and >= 1e-30, got 0"),
        (lambda: E2LSH(3, norm=3), "norm must be from 1 to 2, got 3"),
        (lambda: E2LSH(3, functions=33), "functions must be from 1 to 32"),
        (lambda: SimHash(3).encode(np.zeros((2, 4))), r"observations has shape \(2, 4\)"),
        (lambda: E2LSH(3).encode(np.zeros(3)), r"observations has shape \(3,\)"),
    ],
)
def test_bad_settings_and_shapes_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()
