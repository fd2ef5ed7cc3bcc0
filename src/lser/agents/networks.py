"""Perceptrons with their backward pass written out, over views of one flat parameter vector.

The networks here are small, so autograd's bookkeeping and per-tensor optimiser loops would cost as
much as the arithmetic. Keeping every parameter of an agent in one vector makes an Adam step or a
target update a single call, and the explicit backward pass computes only the gradients in use.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

Sizes = tuple[int, ...]
"""Widths of a perceptron: inputs, each hidden layer, outputs."""

EPSILON = 1e-5  # of nn.LayerNorm
ALIGNMENT = 16  # floats; every network starts on a cache line


class Layer(NamedTuple):
    """Views of one layer's parameters: an affine map and the gain and shift of its LayerNorm."""

    weight: Tensor  # (inputs, outputs)
    bias: Tensor  # (outputs,)
    gain: Tensor  # (outputs,); empty in the output layer
    shift: Tensor  # (outputs,); empty in the output layer


class Step(NamedTuple):
    """What a hidden layer's backward pass needs to remember."""

    inputs: Tensor  # (b, inputs)
    affine: Tensor  # (b, outputs) before LayerNorm
    mean: Tensor  # (b, 1)
    rstd: Tensor  # (b, 1)
    outputs: Tensor  # (b, outputs) after ReLU


class Perceptron:
    """Hidden layers of affine map, LayerNorm and ReLU, then an affine output layer."""

    def __init__(self, sizes: Sizes, vector: Tensor) -> None:
        """Read the parameters from `vector`, of `parameter_count(sizes)` numbers."""
        self.vector = vector
        self.layers: list[Layer] = []
        start = 0
        for index, (inputs, outputs) in enumerate(pairwise(sizes)):
            norm = outputs if index < len(sizes) - 2 else 0
            shapes = ((inputs, outputs), (outputs,), (norm,), (norm,))
            views = []
            for shape in shapes:
                count = torch.Size(shape).numel()
                views.append(vector[start : start + count].view(shape))
                start += count
            self.layers.append(Layer(*views))
        *self.hidden, self.head = self.layers

    def initialise(self, generator: torch.Generator, *, output_scale: float = 0.1) -> None:
        """Draw nn.Linear's and nn.LayerNorm's defaults, the output layer scaled down."""
        for layer in self.layers:
            bound = layer.weight.shape[0] ** -0.5
            for values in (layer.weight, layer.bias):
                draw = torch.empty(values.shape).uniform_(-bound, bound, generator=generator)
                values.copy_(draw)
            layer.gain.fill_(1.0)
            layer.shift.zero_()
        self.head.weight.mul_(output_scale)
        self.head.bias.mul_(output_scale)

    def __call__(self, inputs: Tensor) -> Tensor:
        """Outputs (b, outputs) of inputs (b, inputs)."""
        return self.forward(inputs)[0]

    def forward(self, inputs: Tensor) -> tuple[Tensor, list[Step]]:
        """Outputs, and the tape that `backward` and `input_gradient` read."""
        tape = []
        for weight, bias, gain, shift in self.hidden:
            affine = torch.addmm(bias, inputs, weight)
            normal, mean, rstd = torch.native_layer_norm(affine, bias.shape, gain, shift, EPSILON)
            outputs = normal.relu_()
            tape.append(Step(inputs, affine, mean, rstd, outputs))
            inputs = outputs
        return torch.addmm(self.head.bias, inputs, self.head.weight), tape

    def backward(self, tape: list[Step], gradient: Tensor, into: "Perceptron") -> None:
        """Write the parameters' gradient into the twin `into`, given that of the outputs."""
        torch.mm(tape[-1].outputs.t(), gradient, out=into.head.weight)
        torch.sum(gradient, 0, out=into.head.bias)
        gradient = gradient @ self.head.weight.t()
        for index in reversed(range(len(tape))):
            step, layer, target = tape[index], self.hidden[index], into.hidden[index]
            gradient, gain, shift = _norm_backward(gradient, step, layer, parameters=True)
            target.gain.copy_(gain)
            target.shift.copy_(shift)
            torch.mm(step.inputs.t(), gradient, out=target.weight)
            torch.sum(gradient, 0, out=target.bias)
            if index:
                gradient = gradient @ layer.weight.t()

    def input_gradient(self, tape: list[Step], gradient: Tensor, *, first: int = 0) -> Tensor:
        """Gradient of the inputs from column `first` on, (b, inputs - first)."""
        gradient = gradient @ self.head.weight.t()
        for step, layer in zip(reversed(tape), reversed(self.hidden), strict=True):
            gradient, _, _ = _norm_backward(gradient, step, layer, parameters=False)
            weight = layer.weight if layer is not self.hidden[0] else layer.weight[first:]
            gradient = gradient @ weight.t()
        return gradient


def _norm_backward(
    gradient: Tensor, step: Step, layer: Layer, *, parameters: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Back through ReLU and LayerNorm: gradients of the affine map, the gain and the shift."""
    through: tuple[Tensor, Tensor, Tensor] = torch.ops.aten.native_layer_norm_backward(
        torch.ops.aten.threshold_backward(gradient, step.outputs, 0.0),
        step.affine,
        layer.bias.shape,
        step.mean,
        step.rstd,
        layer.gain,
        layer.shift,
        [True, parameters, parameters],
    )
    return through


def parameter_count(sizes: Sizes) -> int:
    """Numbers one perceptron occupies in a flat vector, padded to a cache line."""
    affine = sum((inputs + 1) * outputs for inputs, outputs in pairwise(sizes))
    norms = 2 * sum(sizes[1:-1])
    return -(-(affine + norms) // ALIGNMENT) * ALIGNMENT


def side_by_side(
    networks: Sequence[Sizes], device: torch.device
) -> tuple[Tensor, Perceptron, list[Perceptron]]:
    """A flat vector of zeros, and the first and the other perceptrons that are its views."""
    counts = [parameter_count(sizes) for sizes in networks]
    vector = torch.zeros(sum(counts), device=device)
    parts = zip(networks, torch.split(vector, counts), strict=True)
    first, *others = [Perceptron(sizes, part) for sizes, part in parts]
    return vector, first, others
