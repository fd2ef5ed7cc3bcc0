"""What happens between matrix products: compiled loops for the CPU, torch operations elsewhere.

Torch would run LayerNorm, ReLU and Adam as several operations that each read and write whole
arrays. Fused into one pass they cost far less on the CPU.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from lser.compiled import relaxed_kernel
from lser.types import Float32

EPSILON = np.float32(1e-5)  # of nn.LayerNorm
ONE_MINUS_BETA1 = np.float32(0.1)  # these three of torch.optim.Adam
ONE_MINUS_BETA2 = np.float32(0.001)
ADAM_EPSILON = np.float32(1e-8)


class Kernels(NamedTuple):
    """The operations of one kind of device, and how a tensor is handed to them."""

    operand: Callable[[Tensor], Any]
    forward: Callable[..., None]
    backward: Callable[..., None]
    backward_inputs: Callable[..., None]
    adam: Callable[..., None]


def kernels_for(device: torch.device) -> Kernels:
    """Compiled loops on the CPU, torch operations on anything else."""
    if device.type == "cpu":
        return Kernels(Tensor.numpy, forward, backward, backward_inputs, adam)
    return Kernels(_same, forward_torch, backward_torch, backward_inputs_torch, adam_torch)


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
    gain_gradient: Float32,
    shift_gradient: Float32,
    bias_gradient: Float32,
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


def forward_torch(
    normal: Tensor, gain: Tensor, shift: Tensor, outputs: Tensor, rstd: Tensor
) -> None:
    """`forward` for any device."""
    variance, mean = torch.var_mean(normal, 1, correction=0, keepdim=True)
    torch.rsqrt(variance.view(-1) + float(EPSILON), out=rstd)
    normal.sub_(mean).mul_(rstd.unsqueeze(1))
    torch.addcmul(shift, normal, gain, out=outputs).relu_()


def backward_torch(
    gradient: Tensor,
    outputs: Tensor,
    normal: Tensor,
    rstd: Tensor,
    gain: Tensor,
    gain_gradient: Tensor,
    shift_gradient: Tensor,
    bias_gradient: Tensor,
) -> None:
    """`backward` for any device."""
    gradient.mul_(outputs > 0)
    torch.sum(gradient, 0, out=shift_gradient)
    torch.sum(gradient * normal, 0, out=gain_gradient)
    backward_inputs_torch(gradient, outputs, normal, rstd, gain)
    torch.sum(gradient, 0, out=bias_gradient)


def backward_inputs_torch(
    gradient: Tensor, outputs: Tensor, normal: Tensor, rstd: Tensor, gain: Tensor
) -> None:
    """`backward_inputs` for any device."""
    gradient.mul_(outputs > 0).mul_(gain)
    slope = (gradient * normal).mean(1, keepdim=True)
    gradient.sub_(gradient.mean(1, keepdim=True)).sub_(normal * slope).mul_(rstd.unsqueeze(1))


def adam_torch(
    values: Tensor,
    gradient: Tensor,
    mean: Tensor,
    square: Tensor,
    rate: np.float32,
    correction: np.float32,
) -> None:
    """`adam` for any device."""
    mean.lerp_(gradient, float(ONE_MINUS_BETA1))
    square.lerp_(gradient * gradient, float(ONE_MINUS_BETA2))
    scale = square.sqrt().mul_(float(correction)).add_(float(ADAM_EPSILON))
    values.addcdiv_(mean, scale, value=-float(rate))


def _same(tensor: Tensor) -> Tensor:
    return tensor
