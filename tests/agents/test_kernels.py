"""The compiled loops for one agent equal the torch operations for a stack."""

import numpy as np
import pytest
import torch

from lser.agents import kernels
from lser.types import Float32


def array(*shape: int, seed: int) -> Float32:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def both(name: str, *arrays: Float32 | np.float32) -> None:
    """Run the compiled loop and a stack of one on copies; every array must end up equal."""
    ours = [x.copy() for x in arrays]
    theirs = [torch.from_numpy(np.array(x))[None] for x in arrays]
    getattr(kernels, name)(*ours)
    given = list(theirs)
    if name == "backward":  # the sums of bias, gain and shift are one array in a stack
        given[3], given[4] = theirs[3].unsqueeze(-1), theirs[4].unsqueeze(1)
        sums = torch.empty(1, 1, 3 * arrays[0].shape[1])
        kernels.stacked_backward(*given[:5], sums)
        theirs[5:] = list(sums[:, 0].chunk(3, 1))
    elif name == "backward_inputs":
        kernels.stacked_backward_inputs(*given[:3], given[3].unsqueeze(-1), given[4].unsqueeze(1))
    elif name == "forward":
        rstd, bias = given[4].unsqueeze(-1), torch.zeros(1, 1, arrays[0].shape[1])
        vectors = (bias, *(g.unsqueeze(1) for g in given[1:3]))
        kernels.stacked_forward(given[0], *vectors, given[3], rstd)
    else:
        rate, correction = (x.view(1, 1) for x in given[4:])
        kernels.stacked_adam(*given[:4], rate, correction, torch.ones(1, 1))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, np.asarray(b)[0], rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(("rows", "width"), [(1, 1), (3, 5), (128, 128), (7, 33)])
def test_compiled_and_stacked_layers_agree(rows: int, width: int) -> None:
    square = [array(rows, width, seed=seed) for seed in range(3)]
    vectors = [array(width, seed=10 + seed) for seed in range(5)]
    rstd = np.abs(array(rows, seed=20)) + np.float32(0.1)
    both("forward", square[0], *vectors[:2], square[1], rstd)
    both("backward_inputs", *square, rstd, vectors[0])
    both("backward", *square, rstd, *vectors[:4])


def test_compiled_and_stacked_adam_agree() -> None:
    values, gradient, mean = (array(1000, seed=seed) for seed in range(3))
    square = np.abs(array(1000, seed=3))
    both("adam", values, gradient, mean, square, np.float32(1e-2), np.float32(3.0))


def test_rows_far_from_zero_are_normalised_without_cancellation() -> None:
    rows = array(4, 128, seed=0) + 1000
    outputs, rstd = np.empty_like(rows), np.empty(4, np.float32)
    kernels.forward(rows, np.ones(128, np.float32), np.zeros(128, np.float32), outputs, rstd)
    np.testing.assert_allclose(rows.std(1), 1, rtol=1e-3)
    np.testing.assert_allclose(rows.mean(1), 0, atol=1e-3)


def test_a_nan_reaches_the_outputs() -> None:
    rows = array(2, 8, seed=0)
    rows[1, 3] = np.nan
    outputs, rstd = np.empty_like(rows), np.empty(2, np.float32)
    kernels.forward(rows, np.ones(8, np.float32), np.zeros(8, np.float32), outputs, rstd)
    assert np.isfinite(rows[0]).all()
    assert np.isnan(rows[1]).all()
