"""What happens between matrix products: fused loops for one agent on the CPU, torch for stacks.

Torch would run LayerNorm, ReLU and Adam as several operations that each read and write whole
arrays. Fused into one pass they cost far less: for one agent on the CPU they are compiled loops
over (b, n) arrays, for a stack of G agents torch operations over (G, b, n) tensors, which
`torch.compile` fuses on an accelerator. Both have the same arguments and are tested for equality.
"""

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from lser.compiled import relaxed_kernel
from lser.types import Float32

log = logging.getLogger("lser")

EPSILON = np.float32(1e-5)  # of nn.LayerNorm
ONE_MINUS_BETA1 = np.float32(0.1)  # these three of torch.optim.Adam
ONE_MINUS_BETA2 = np.float32(0.001)
ADAM_EPSILON = np.float32(1e-8)
# the same as Python's numbers, which torch.compile takes for constants
_EPSILON, _ADAM_EPSILON = float(EPSILON), float(ADAM_EPSILON)
_ONE_MINUS_BETA1, _ONE_MINUS_BETA2 = float(ONE_MINUS_BETA1), float(ONE_MINUS_BETA2)


class Kernels(NamedTuple):
    """The operations on plain arrays or on stacks, and how a tensor is handed to them."""

    operand: Callable[[Tensor], Any]
    product: Callable[..., Tensor]  # matrix product
    affine: Callable[..., Tensor]  # matrix product and a bias
    forward: Callable[..., None]
    backward: Callable[..., None]
    backward_inputs: Callable[..., None]
    adam: Callable[..., None]
    follow: Callable[..., Any]


@relaxed_kernel
def forward(
    normal: Float32, gain: Float32, shift: Float32, outputs: Float32, rstd: Float32
) -> None:
    """Normalise the rows of `normal` (b, n) in place; outputs = relu(gain · normal + shift)."""
    rows, width = normal.shape
    share = np.float32(1 / width)
    zero = np.float32(0)
    for i in range(rows):
        total = zero
        for j in range(width):
            total += normal[i, j]
        mean = total * share
        square = zero
        for j in range(width):
            square += (normal[i, j] - mean) ** 2
        factor = np.float32(1) / np.sqrt(square * share + EPSILON)
        rstd[i] = factor
        for j in range(width):
            value = (normal[i, j] - mean) * factor
            normal[i, j] = value
            outputs[i, j] = max(value * gain[j] + shift[j], zero)


@relaxed_kernel
def backward(
    gradient: Float32,
    outputs: Float32,
    normal: Float32,
    rstd: Float32,
    gain: Float32,
    bias_gradient: Float32,
    gain_gradient: Float32,
    shift_gradient: Float32,
) -> None:
    """Turn `gradient` (b, n) of the outputs into that of the affine map, and sum the others."""
    rows, width = gradient.shape
    share = np.float32(1 / width)
    zero = np.float32(0)
    gain_gradient[:] = zero
    shift_gradient[:] = zero
    bias_gradient[:] = zero
    for i in range(rows):
        mean = zero
        slope = zero
        for j in range(width):
            scaled = gradient[i, j] * gain[j] if outputs[i, j] > zero else zero
            mean += scaled
            slope += scaled * normal[i, j]
        mean *= share
        slope *= share
        factor = rstd[i]
        for j in range(width):
            value = gradient[i, j] if outputs[i, j] > zero else zero
            shift_gradient[j] += value
            gain_gradient[j] += value * normal[i, j]
            value = factor * (value * gain[j] - mean - normal[i, j] * slope)
            gradient[i, j] = value
            bias_gradient[j] += value


@relaxed_kernel
def backward_inputs(
    gradient: Float32, outputs: Float32, normal: Float32, rstd: Float32, gain: Float32
) -> None:
    """As `backward`, without the parameters' gradients."""
    rows, width = gradient.shape
    share = np.float32(1 / width)
    zero = np.float32(0)
    for i in range(rows):
        mean = zero
        slope = zero
        for j in range(width):
            scaled = gradient[i, j] * gain[j] if outputs[i, j] > zero else zero
            mean += scaled
            slope += scaled * normal[i, j]
        mean *= share
        slope *= share
        factor = rstd[i]
        for j in range(width):
            scaled = gradient[i, j] * gain[j] if outputs[i, j] > zero else zero
            gradient[i, j] = factor * (scaled - mean - normal[i, j] * slope)


@relaxed_kernel
def adam(
    values: Float32,
    gradient: Float32,
    mean: Float32,
    square: Float32,
    rate: np.float32,
    correction: np.float32,
) -> None:
    """Update both moments and move the values by -rate · mean / (correction · √square + ε)."""
    for i in range(values.size):
        mean[i] += ONE_MINUS_BETA1 * (gradient[i] - mean[i])
        square[i] += ONE_MINUS_BETA2 * (gradient[i] ** 2 - square[i])
        values[i] -= rate * mean[i] / (np.sqrt(square[i]) * correction + ADAM_EPSILON)


def stacked_forward(
    normal: Tensor, gain: Tensor, shift: Tensor, outputs: Tensor, rstd: Tensor
) -> None:
    """`forward` of every agent: (G, b, n), with gain and shift (G, 1, n)."""
    variance, mean = torch.var_mean(normal, -1, correction=0, keepdim=True)
    factor = torch.rsqrt(variance + _EPSILON)
    value = (normal - mean) * factor
    rstd.copy_(factor)
    outputs.copy_(torch.relu(value * gain + shift))
    normal.copy_(value)


def stacked_backward(
    gradient: Tensor, outputs: Tensor, normal: Tensor, rstd: Tensor, gain: Tensor, sums: Tensor
) -> None:
    """`backward` of every agent; `sums` (G, 1, 3 n) becomes that of bias, gain and shift.

    One array instead of three: compiled code copes badly with outputs that share their memory.
    """
    masked = torch.where(outputs > 0, gradient, 0.0)
    result = _through_norm(masked * gain, normal, rstd)
    parts = (result, masked * normal, masked)
    sums.copy_(torch.cat([part.sum(-2, keepdim=True) for part in parts], -1))
    gradient.copy_(result)


def stacked_backward_inputs(
    gradient: Tensor, outputs: Tensor, normal: Tensor, rstd: Tensor, gain: Tensor
) -> None:
    """`backward_inputs` of every agent."""
    masked = torch.where(outputs > 0, gradient, 0.0)
    gradient.copy_(_through_norm(masked * gain, normal, rstd))


def _through_norm(scaled: Tensor, normal: Tensor, rstd: Tensor) -> Tensor:
    slope = (scaled * normal).mean(-1, keepdim=True)
    return (scaled - scaled.mean(-1, keepdim=True) - normal * slope) * rstd


def stacked_adam(
    values: Tensor,
    gradient: Tensor,
    mean: Tensor,
    square: Tensor,
    rate: Tensor,
    correction: Tensor,
    active: Tensor,
) -> None:
    """`adam` of the agents with 1 in `active`; rate, correction and active are (G, 1)."""
    first = mean + (gradient - mean) * (_ONE_MINUS_BETA1 * active)
    second = square + (gradient * gradient - square) * (_ONE_MINUS_BETA2 * active)
    move = rate * first / (second.sqrt() * correction + _ADAM_EPSILON)
    values.sub_(move * active)
    mean.copy_(first)
    square.copy_(second)


def stacked_follow(targets: Tensor, values: Tensor, share: Tensor) -> None:
    """Move every agent's targets its `share` (G, 1) of the way to the values."""
    targets.add_((values - targets) * share)


def _same(tensor: Tensor) -> Tensor:
    return tensor


PLAIN = Kernels(
    Tensor.numpy, torch.mm, torch.addmm, forward, backward, backward_inputs, adam, Tensor.lerp_
)
STACKED = Kernels(
    _same,
    torch.bmm,
    torch.baddbmm,
    stacked_forward,
    stacked_backward,
    stacked_backward_inputs,
    stacked_adam,
    stacked_follow,
)


def fused() -> Kernels:
    """The stacked kernels through `torch.compile`, each compiled at its first call."""
    config: Any = torch._dynamo.config
    config.recompile_limit = max(config.recompile_limit, 64)  # one per shape
    return Kernels(*STACKED[:3], *map(_compiled, STACKED[3:]))


def _compiled(kernel: Callable[..., None]) -> Callable[..., None]:
    """`kernel` compiled, or itself with a warning where that does not work."""
    compiled = torch.compile(kernel, dynamic=False, fullgraph=True)
    works = True

    def call(*tensors: Tensor) -> None:
        nonlocal works
        if works:
            try:
                compiled(*tensors)
                return
            except Exception as error:  # of the compiler or its tools: any kind
                log.warning("torch.compile does not work here (%s): slower", error)
                works = False
        kernel(*tensors)

    return call
