"""Perceptrons with their backward pass written out, over views of one flat parameter vector.

The networks here are small, so autograd's bookkeeping and per-tensor optimiser loops would cost as
much as the arithmetic. Keeping every parameter of an agent in one vector makes an Adam step or a
target update a single call, and the explicit backward pass computes only the gradients in use,
in buffers that are made once.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lser.agents.kernels import kernels_for

Sizes = tuple[int, ...]
"""Widths of a perceptron: inputs, each hidden layer, outputs."""

ALIGNMENT = 16  # floats; every network starts on a cache line


class Layer(NamedTuple):
    """Views of one layer's parameters: an affine map and the gain and shift of its LayerNorm."""

    weight: Tensor  # (inputs, outputs); in the output layer (outputs, inputs)
    bias: Tensor  # (outputs,)
    gain: Tensor  # (outputs,); empty in the output layer
    shift: Tensor  # (outputs,); empty in the output layer


class Step(NamedTuple):
    """Buffers of one hidden layer's forward and backward pass."""

    normal: Tensor  # (b, width) the affine map, then normalised in place
    rstd: Tensor  # (b,)
    outputs: Tensor  # (b, width) after ReLU
    gradient: Tensor  # (b, width) of the outputs, then in place of the affine map
    transposed: Tensor  # (width, b) a view of the outputs


class Tape:
    """The activations of one forward pass, kept for the backward pass; made once and reused."""

    def __init__(self, hidden: Sequence[int], rows: int, device: torch.device) -> None:
        """Make room for `rows` inputs of perceptrons with these hidden layers."""
        self.rows = rows
        self.inputs = torch.empty(0, device=device)  # (b, inputs) of the last forward pass
        self.steps = []
        for width in hidden:
            normal, outputs, gradient = torch.empty(3, rows, width, device=device)
            rstd = torch.empty(rows, device=device)
            self.steps.append(Step(normal, rstd, outputs, gradient, outputs.t()))
        self.native = [Step(*map(kernels_for(device).operand, step)) for step in self.steps]


class Perceptron:
    """Hidden layers of affine map, LayerNorm and ReLU, then an affine output layer.

    The output layer works on transposed arrays: it is narrow, and matrix products are faster when
    the contiguous axis of their result is the long one, here the batch.
    """

    def __init__(self, sizes: Sizes, vector: Tensor) -> None:
        """Read the parameters from `vector`, of `parameter_count(sizes)` numbers."""
        self.sizes, self.vector = sizes, vector
        self.layers: list[Layer] = []
        for inputs, outputs in pairwise(sizes):
            last = len(self.layers) == len(sizes) - 2
            norm = 0 if last else outputs
            counts = [inputs * outputs, outputs, norm, norm]
            *views, vector = torch.split(vector, [*counts, len(vector) - sum(counts)])
            shape = (outputs, inputs) if last else (inputs, outputs)
            self.layers.append(Layer(views[0].view(shape), *views[1:]))
        *self.hidden, self.head = self.layers
        self._kernels = kernels_for(vector.device)
        self._native = [Layer(*map(self._kernels.operand, layer)) for layer in self.hidden]
        self._transposed = [layer.weight.t() for layer in self.hidden]
        self._head_bias = self.head.bias.unsqueeze(1)

    def initialise(self, generator: torch.Generator, *, output_scale: float = 0.1) -> None:
        """Draw nn.Linear's and nn.LayerNorm's defaults, the output layer scaled down."""
        for inputs, layer in zip(self.sizes, self.layers, strict=False):
            bound = inputs**-0.5
            for values in (layer.weight, layer.bias):
                draw = torch.empty(values.shape).uniform_(-bound, bound, generator=generator)
                values.copy_(draw)
            layer.gain.fill_(1.0)
            layer.shift.zero_()
        self.head.weight.mul_(output_scale)
        self.head.bias.mul_(output_scale)

    def forward(self, inputs: Tensor, tape: Tape) -> Tensor:
        """Outputs (b, outputs) of inputs (b, inputs), leaving the activations on the tape."""
        tape.inputs = inputs
        for index, layer in enumerate(self.hidden):
            step, native, buffer = tape.steps[index], self._native[index], tape.native[index]
            torch.addmm(layer.bias, inputs, layer.weight, out=step.normal)
            self._kernels.forward(
                buffer.normal, native.gain, native.shift, buffer.outputs, buffer.rstd
            )
            inputs = step.outputs
        return torch.addmm(self._head_bias, self.head.weight, step.transposed).t()

    def backward(self, gradient: Tensor, tape: Tape, *, into: "Perceptron") -> None:
        """Write the parameters' gradient into the twin `into`, given that of the outputs."""
        torch.mm(gradient.t(), tape.steps[-1].outputs, out=into.head.weight)
        torch.sum(gradient, 0, out=into.head.bias)
        above = self.head.weight
        for index in reversed(range(len(self.hidden))):
            step, native, buffer = tape.steps[index], self._native[index], tape.native[index]
            torch.mm(gradient, above, out=step.gradient)
            target = into._native[index]
            self._kernels.backward(
                *(buffer.gradient, buffer.outputs, buffer.normal, buffer.rstd, native.gain),
                *(target.gain, target.shift, target.bias),
            )
            inputs = tape.steps[index - 1].transposed if index else tape.inputs.t()
            torch.mm(inputs, step.gradient, out=into.hidden[index].weight)
            gradient, above = step.gradient, self._transposed[index]

    def input_gradient(self, gradient: Tensor, tape: Tape, *, first: int = 0) -> Tensor:
        """Gradient of the inputs from column `first` on, (b, inputs - first)."""
        above = self.head.weight
        for index in reversed(range(len(self.hidden))):
            step, native, buffer = tape.steps[index], self._native[index], tape.native[index]
            torch.mm(gradient, above, out=step.gradient)
            self._kernels.backward_inputs(
                buffer.gradient, buffer.outputs, buffer.normal, buffer.rstd, native.gain
            )
            gradient, above = step.gradient, self._transposed[index]
        return torch.mm(self.hidden[0].weight[first:], gradient.t()).t()


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


def as_tensor(saved: Tensor | NDArray[Any]) -> Tensor:
    """A saved tensor or array as a tensor; arrays are copied, for they may be read-only."""
    return saved if isinstance(saved, Tensor) else torch.from_numpy(np.array(saved))
