"""Perceptrons with their backward pass written out, for one agent or for a stack of G.

The networks here are small, so autograd's bookkeeping and per-tensor optimiser loops would cost as
much as the arithmetic. Keeping every parameter of an agent in one vector makes an Adam step or a
target update a single call, and the explicit backward pass computes only the gradients in use,
in buffers that are made once. Arrays of a stack have a leading axis of agents: a vector (P,) is
(G, P) there, inputs (b, n) are (G, b, n), and nothing else differs.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lser.agents.kernels import Kernels

Sizes = tuple[int, ...]
"""Widths of a perceptron: inputs, each hidden layer, outputs."""

ALIGNMENT = 16  # floats; every network starts on a cache line


class Layer(NamedTuple):
    """Views of one layer's parameters: an affine map and the gain and shift of its LayerNorm."""

    weight: Tensor  # (.., inputs, outputs); in the output layer (.., outputs, inputs)
    bias: Tensor  # (outputs,), in a stack (G, 1, outputs); so are the others
    gain: Tensor  # empty in the output layer
    shift: Tensor  # empty in the output layer
    sums: Tensor  # bias, gain and shift in one


class Step(NamedTuple):
    """Buffers of one hidden layer's forward and backward pass."""

    normal: Tensor  # (.., b, width) the affine map, then normalised in place
    rstd: Tensor  # (b,), in a stack (G, b, 1)
    outputs: Tensor  # (.., b, width) after ReLU
    gradient: Tensor  # (.., b, width) of the outputs, then in place of the affine map
    joined: Tensor  # (.., b, width + late) the outputs and what enters late beside them
    transposed: Tensor  # (.., width + late, b) a view of joined


class Tape:
    """The activations of one forward pass, kept for the backward pass; made once and reused."""

    def __init__(
        self, hidden: Sequence[int], lead: Sizes, device: torch.device, late: int = 0
    ) -> None:
        """Make room for inputs (*lead, n) of perceptrons with these hidden layers."""
        self.lead = lead
        self.inputs = torch.empty(0, device=device)  # (.., b, inputs) of the last forward pass
        self.steps = []
        for index, width in enumerate(hidden):
            normal, gradient = torch.empty(2, *lead, width, device=device)
            joined = torch.empty(*lead, width + (late if index == 0 else 0), device=device)
            shape = lead if len(lead) == 1 else (*lead, 1)
            rstd = torch.empty(shape, device=device)
            self.steps.append(Step(normal, rstd, joined[..., :width], gradient, joined, joined.mT))
        self.native: list[Any] = []  # the steps as the kernels take them


class Perceptron:
    """Hidden layers of affine map, LayerNorm and ReLU, then an affine output layer.

    With `late`, that many inputs enter at the second layer. The output layer works on transposed
    arrays: it is narrow, and matrix products are faster when the contiguous axis of their result
    is the long one, here the batch.
    """

    def __init__(self, sizes: Sizes, vector: Tensor, kernels: Kernels, late: int = 0) -> None:
        """Read the parameters from `vector` (.., P), P = `parameter_count(sizes, late)`."""
        self.sizes, self.vector, self.late = sizes, vector, late
        self._kernels = kernels
        self._stacked = vector.ndim == 2
        self.layers: list[Layer] = []
        start = 0
        for index, (inputs, outputs) in enumerate(pairwise(_widths(sizes, late))):
            last = index == len(sizes) - 2
            fan_in = inputs + (late if index == 1 else 0)
            weight, start = vector[..., start : start + fan_in * outputs], start + fan_in * outputs
            sums = vector[..., start : start + (outputs if last else 3 * outputs)]
            start += sums.shape[-1]
            sums = sums.unsqueeze(-2) if self._stacked else sums
            shape = (outputs, fan_in) if last else (fan_in, outputs)
            bias, gain, shift = (sums[..., k * outputs : (k + 1) * outputs] for k in range(3))
            weight = weight.view(*vector.shape[:-1], *shape)
            self.layers.append(Layer(weight, bias, gain, shift, sums))
        *self.hidden, self.head = self.layers
        self._native = [Layer(*map(kernels.operand, layer)) for layer in self.hidden]
        self._sums = [(n.sums,) if self._stacked else n[1:4] for n in self._native]
        below = [
            layer.weight[..., :width, :] for layer, width in zip(self.hidden, sizes, strict=False)
        ]
        self._transposed = [weight.mT for weight in below]
        bias = self.head.bias
        self._head_bias = bias.mT if self._stacked else bias.unsqueeze(1)

    def initialise(
        self, generator: torch.Generator, *, output_scale: float = 0.1, gain: str = "ones"
    ) -> None:
        """Draw nn.Linear's and nn.LayerNorm's defaults, the output layer scaled down."""
        for layer in self.layers:
            last = layer is self.head
            bound = layer.weight.shape[-1 if last else -2] ** -0.5
            for values in (layer.weight, layer.bias):
                draw = torch.empty(values.shape).uniform_(-bound, bound, generator=generator)
                values.copy_(draw)
            layer.gain.fill_(1.0)
            if gain == "uniform":
                layer.gain.copy_(torch.empty(layer.gain.shape).uniform_(generator=generator))
            layer.shift.zero_()
        self.head.weight.mul_(output_scale)
        self.head.bias.mul_(output_scale)

    def tape(self, lead: Sizes) -> Tape:
        """Room for the activations of inputs (*lead, n)."""
        tape = Tape(self.sizes[1:-1], lead, self.vector.device, self.late)
        tape.native = [Step(*map(self._kernels.operand, step)) for step in tape.steps]
        return tape

    def forward(self, inputs: Tensor, tape: Tape, late: Tensor | None = None) -> Tensor:
        """Outputs (.., b, outputs) of inputs (.., b, inputs); the tape keeps the activations."""
        tape.inputs = inputs
        for index, layer in enumerate(self.hidden):
            step, native, buffer = tape.steps[index], self._native[index], tape.native[index]
            self._kernels.hidden(inputs, layer, native, step, buffer)
            if late is not None and index == 0:
                step.joined[..., -self.late :] = late
            inputs = step.joined
        return self._kernels.affine(self._head_bias, self.head.weight, step.transposed).mT

    def backward(self, gradient: Tensor, tape: Tape, *, into: "Perceptron") -> None:
        """Write the parameters' gradient into the twin `into`, given that of the outputs.

        The way down through the layers waits for no weight's gradient.
        """
        side = self._kernels.side
        with side.fork():
            self._kernels.product(gradient.mT, tape.steps[-1].joined, out=into.head.weight)
            if self._stacked:
                torch.sum(gradient, -2, keepdim=True, out=into.head.bias)
            else:
                torch.sum(gradient, 0, out=into.head.bias)
        above = self.head.weight
        for index in reversed(range(len(self.hidden))):
            step, native, buffer = tape.steps[index], self._native[index], tape.native[index]
            self._kernels.product(gradient, above, out=step.gradient)
            self._kernels.backward(
                *(buffer.gradient, buffer.outputs, buffer.normal, buffer.rstd, native.gain),
                *into._sums[index],
            )
            inputs = tape.steps[index - 1].transposed if index else tape.inputs.mT
            with side.fork():
                self._kernels.product(inputs, step.gradient, out=into.hidden[index].weight)
            gradient, above = step.gradient, self._transposed[index]
        side.join()

    def input_gradient(self, gradient: Tensor, tape: Tape, *, first: int = 0) -> Tensor:
        """Gradient of the inputs from column `first` on, or of the late ones, (.., b, columns)."""
        above, lowest = self.head.weight, 1 if self.late else 0
        for index in reversed(range(lowest, len(self.hidden))):
            step, native, buffer = tape.steps[index], self._native[index], tape.native[index]
            self._kernels.product(gradient, above, out=step.gradient)
            self._kernels.backward_inputs(
                buffer.gradient, buffer.outputs, buffer.normal, buffer.rstd, native.gain
            )
            gradient, above = step.gradient, self._transposed[index]
        weight = self.hidden[lowest].weight[..., -self.late if self.late else first :, :]
        return self._kernels.product(weight, gradient.mT).mT


def _widths(sizes: Sizes, late: int) -> Sizes:
    if late and len(sizes) < 4:
        raise ValueError(f"late inputs need two hidden layers, got {sizes[1:-1]}")
    return sizes


def parameter_count(sizes: Sizes, late: int = 0) -> int:
    """Numbers one perceptron occupies in a flat vector, padded to a cache line."""
    affine = sum((inputs + 1) * outputs for inputs, outputs in pairwise(sizes))
    affine += late * sizes[2] if late else 0
    norms = 2 * sum(sizes[1:-1])
    return -(-(affine + norms) // ALIGNMENT) * ALIGNMENT


def as_tensor(saved: Tensor | NDArray[Any]) -> Tensor:
    """A saved tensor or array as a tensor; arrays are copied, for they may be read-only."""
    return saved if isinstance(saved, Tensor) else torch.from_numpy(np.array(saved))
