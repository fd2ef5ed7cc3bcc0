"""One network of every agent: perceptrons, targets and Adam with a leading axis for the agents."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lser.agents.kernels import ADAM_EPSILON, EPSILON, ONE_MINUS_BETA1, ONE_MINUS_BETA2
from lser.agents.networks import Layer, Sizes

_aten = torch.ops.aten


class Trace(NamedTuple):
    """What a hidden layer's backward pass needs of its forward pass."""

    inputs: Tensor  # (G, b, inputs)
    affine: Tensor  # (G, b, width)
    normal: Tensor  # (G, b, width)
    mean: Tensor  # (G, b, 1)
    rstd: Tensor  # (G, b, 1)
    outputs: Tensor  # (G, b, width) after ReLU


def layers(sizes: Sizes, stack: Tensor) -> list[Layer]:
    """Views of the parameters (G, P), as `Perceptron` lays out each agent's."""
    views: list[Layer] = []
    at = 0
    for inputs, outputs in pairwise(sizes):
        last = len(views) == len(sizes) - 2
        shape = (outputs, inputs) if last else (inputs, outputs)
        parts = []
        for count in (inputs * outputs, outputs, *((0, 0) if last else (outputs, outputs))):
            parts.append(stack[:, at : at + count])
            at += count
        views.append(Layer(parts[0].view(-1, *shape), *(part.unsqueeze(1) for part in parts[1:])))
    return views


def forward(network: Sequence[Layer], inputs: Tensor) -> tuple[Tensor, list[Trace]]:
    """Outputs (G, b, outputs) of inputs (G, b, inputs), and the traces of the hidden layers."""
    *hidden, head = network
    traces = []
    for layer in hidden:
        affine = torch.baddbmm(layer.bias, inputs, layer.weight)
        normal, mean, rstd = torch.native_layer_norm(
            affine, affine.shape[-1:], None, None, float(EPSILON)
        )
        outputs = torch.addcmul(layer.shift, normal, layer.gain).relu_()
        traces.append(Trace(inputs, affine, normal, mean, rstd, outputs))
        inputs = outputs
    return torch.baddbmm(head.bias, inputs, head.weight.transpose(1, 2)), traces


def backward(
    network: Sequence[Layer], traces: list[Trace], gradient: Tensor, into: Sequence[Layer]
) -> None:
    """Write the parameters' gradients into the views `into`, given that of the outputs."""
    *hidden, head = network
    torch.bmm(gradient.transpose(1, 2), traces[-1].outputs, out=into[-1].weight)
    torch.sum(gradient, 1, keepdim=True, out=into[-1].bias)
    above = head.weight
    for layer, trace, target in reversed(list(zip(hidden, traces, into[:-1], strict=True))):
        gradient = _aten.threshold_backward(torch.bmm(gradient, above), trace.outputs, 0)
        torch.sum(gradient, 1, keepdim=True, out=target.shift)
        torch.sum(gradient * trace.normal, 1, keepdim=True, out=target.gain)
        gradient = _through_norm(gradient * layer.gain, trace)
        torch.sum(gradient, 1, keepdim=True, out=target.bias)
        torch.bmm(trace.inputs.transpose(1, 2), gradient, out=target.weight)
        above = layer.weight.transpose(1, 2)


def input_gradient(
    network: Sequence[Layer], traces: list[Trace], gradient: Tensor, *, first: int
) -> Tensor:
    """Gradient of the inputs from column `first` on, (G, b, inputs - first)."""
    *hidden, head = network
    above = head.weight
    for layer, trace in reversed(list(zip(hidden, traces, strict=True))):
        gradient = _aten.threshold_backward(torch.bmm(gradient, above), trace.outputs, 0)
        gradient = _through_norm(gradient * layer.gain, trace)
        above = layer.weight.transpose(1, 2)
    return torch.bmm(gradient, above[:, :, first:])


def _through_norm(gradient: Tensor, trace: Trace) -> Tensor:
    shape = [gradient.shape[-1]]
    mask = [True, False, False]  # of the inputs alone: gain and shift are ours
    result: Tensor = _aten.native_layer_norm_backward(
        gradient, trace.affine, shape, trace.mean, trace.rstd, None, None, mask
    )[0]
    return result


class Network:
    """Parameters, targets, gradients and Adam's moments of one network of G agents, each (G, P)."""

    def __init__(self, sizes: Sizes, agents: int, width: int, rate: float, device: torch.device):
        self.rate = rate
        arrays = [torch.zeros(agents, width, device=device) for _ in range(5)]
        self.values, self.targets, self.gradients, self.mean, self.square = arrays
        self.steps = torch.zeros(agents, 1, dtype=torch.float64, device=device)
        self.layers = layers(sizes, self.values)
        self.target_layers = layers(sizes, self.targets)
        self.gradient_layers = layers(sizes, self.gradients)

    def step(self, active: Tensor) -> None:
        """One step of Adam for the agents with 1 in `active` (G, 1); the others stay."""
        self.steps.add_(active)
        steps = self.steps.clamp(min=1)  # an agent that never stepped must not divide by zero
        rate = (self.rate / (1 - 0.9**steps)).float() * active
        correction = ((1 - 0.999**steps) ** -0.5).float()
        self.mean.lerp_(self.gradients, float(ONE_MINUS_BETA1) * active)
        self.square.lerp_(self.gradients * self.gradients, float(ONE_MINUS_BETA2) * active)
        scale = self.square.sqrt().mul_(correction).add_(float(ADAM_EPSILON))
        self.values.sub_((self.mean * rate).div_(scale))

    def follow(self, share: Tensor) -> None:
        """Move the targets their `share` (G, 1) of the way to the parameters."""
        self.targets.lerp_(self.values, share)

    def adam_state(self, slot: int) -> dict[str, Any]:
        """One agent's moments and number of steps, as its own optimiser keeps them."""
        mean, square = self.mean[slot].cpu(), self.square[slot].cpu()
        return {"mean": mean, "square": square, "steps": int(self.steps[slot].item())}
