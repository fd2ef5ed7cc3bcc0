"""What happens between matrix products: fused loops for one agent on the CPU, torch for stacks.

Torch would run LayerNorm, ReLU and Adam as several operations that each read and write whole
arrays. Fused into one pass they cost far less: for one agent on the CPU they are compiled loops
over (b, n) arrays, for a stack of G agents torch operations over (G, b, n) tensors, which
`torch.compile` fuses on an accelerator. Both are tested for equality.
"""

import logging
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from lser.agents.streams import InTurn, Side
from lser.compiled import relaxed_kernel
from lser.types import Float32

log = logging.getLogger("lser")

R = TypeVar("R")

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
    hidden: Callable[..., None]  # affine map, LayerNorm and ReLU
    backward: Callable[..., None]
    backward_inputs: Callable[..., None]
    adam: Callable[..., None]
    follow: Callable[..., Any]
    squash: Callable[..., Tensor]  # outputs of an actor to actions
    unsquash: Callable[..., Tensor]  # the way back, of gradients
    judge: Callable[..., tuple[Tensor, Tensor, Any]]  # errors, their slope, the loss
    note: Callable[..., None]  # a stack's losses of actors that moved
    side: Side = InTurn()


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


def plain_hidden(inputs: Tensor, layer: Any, native: Any, step: Any, buffer: Any) -> None:
    """A layer of one agent; `native` and `buffer` are the arrays of `layer` and `step`."""
    torch.addmm(layer.bias, inputs, layer.weight, out=step.normal)
    forward(buffer.normal, native.gain, native.shift, buffer.outputs, buffer.rstd)


def stacked_hidden(normalise: Callable[..., None]) -> Callable[..., None]:
    """A layer of every agent; `normalise` is `stacked_forward`, as it is or compiled."""

    def hidden(inputs: Tensor, layer: Any, _native: Any, step: Any, _buffer: Any) -> None:
        torch.bmm(inputs, layer.weight, out=step.normal)
        normalise(step.normal, layer.bias, layer.gain, layer.shift, step.outputs, step.rstd)

    return hidden


def stacked_forward(
    normal: Tensor, bias: Tensor, gain: Tensor, shift: Tensor, outputs: Tensor, rstd: Tensor
) -> None:
    """`forward` of every agent: (G, b, n), with gain and shift (G, 1, n), and a bias like them.

    The bias is added here: a product that takes it along would have to copy it first.
    """
    mapped = normal + bias
    variance, mean = torch.var_mean(mapped, -1, correction=0, keepdim=True)
    factor = torch.rsqrt(variance + _EPSILON)
    value = (mapped - mean) * factor
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


def plain_follow(targets: Tensor, values: Tensor, share: float, _moving: None) -> None:
    """Move the targets their share of the way to the values."""
    targets.lerp_(values, share)


def stacked_follow(targets: Tensor, values: Tensor, share: Tensor, moving: Tensor) -> None:
    """The same for the agents with 1 in `moving`; it and `share` are (G, 1)."""
    targets.add_((values - targets) * (share * moving))


def squash(raw: Tensor, centre: Tensor, half: Tensor, out: Tensor) -> Tensor:
    """Write the actions of an actor's outputs, within their bounds; returns tanh of `raw`."""
    tanh = torch.tanh(raw)
    out.copy_(torch.addcmul(centre, half, tanh))
    return tanh


def unsquash(gradient: Tensor, half: Tensor, tanh: Tensor) -> Tensor:
    """The gradient of an actor's outputs, given that of its actions."""
    back: Tensor = torch.ops.aten.tanh_backward(gradient * half, tanh)
    return back


def plain_judge(target: Tensor, value: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, float]:
    """Errors (b, 1) of values, and the slope and level of mean(weights · error²)."""
    rows = target.shape[-2]
    error = target - value
    weighted = weights * error
    loss = torch.dot(weighted.view(-1), error.view(-1)).item() / rows
    return error, weighted * (-2 / rows), loss


def stacked_judge(target: Tensor, value: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """`plain_judge` of every agent: (G, b, 1), the loss (G,)."""
    rows = target.shape[-2]
    error = target - value
    weighted = weights * error
    return error, weighted * (-2 / rows), (weighted * error).sum((-2, -1)) / rows


def stacked_note(kept: Tensor, found: Tensor, moving: Tensor) -> None:
    """Keep what was `found` (G,) of the agents with 1 in `moving` (G, 1)."""
    kept.copy_(torch.where(moving.view(-1) > 0, found, kept))


def _same(tensor: Tensor) -> Tensor:
    return tensor


PLAIN = Kernels(
    operand=Tensor.numpy,
    product=torch.mm,
    affine=torch.addmm,
    hidden=plain_hidden,
    backward=backward,
    backward_inputs=backward_inputs,
    adam=adam,
    follow=plain_follow,
    squash=squash,
    unsquash=unsquash,
    judge=plain_judge,
    note=stacked_note,
)
STACKED = Kernels(
    operand=_same,
    product=torch.bmm,
    affine=torch.baddbmm,
    hidden=stacked_hidden(stacked_forward),
    backward=stacked_backward,
    backward_inputs=stacked_backward_inputs,
    adam=stacked_adam,
    follow=stacked_follow,
    squash=squash,
    unsquash=unsquash,
    judge=stacked_judge,
    note=stacked_note,
)


def fused() -> Kernels:
    """The stacked kernels through `torch.compile`, each compiled at its first call."""
    config: Any = torch._dynamo.config
    config.recompile_limit = max(config.recompile_limit, 64)  # one per shape
    return STACKED._replace(
        hidden=stacked_hidden(compiled_if_possible(stacked_forward)),
        backward=compiled_if_possible(stacked_backward),
        backward_inputs=compiled_if_possible(stacked_backward_inputs),
        adam=compiled_if_possible(stacked_adam),
        follow=compiled_if_possible(stacked_follow),
        squash=compiled_if_possible(squash),
        unsquash=compiled_if_possible(unsquash),
        judge=compiled_if_possible(stacked_judge),
        note=compiled_if_possible(stacked_note),
    )


def compiled_if_possible(kernel: Callable[..., R]) -> Callable[..., R]:
    """`kernel` compiled, or itself with a warning where that does not work."""
    compiled = torch.compile(kernel, dynamic=False, fullgraph=True)
    works = True

    def call(*tensors: Tensor) -> R:
        nonlocal works
        if works:
            try:
                return compiled(*tensors)
            except Exception as error:  # of the compiler or its tools: any kind
                log.warning("torch.compile does not work here (%s): slower", error)
                works = False
        return kernel(*tensors)

    return call
