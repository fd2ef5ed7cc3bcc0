"""What reads an observation and an action and says what they are worth, in three architectures."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from lser.agents.kernels import Kernels
from lser.agents.perceptron import Perceptron, Sizes, Tape, parameter_count


class Shape(NamedTuple):
    """The sizes of a critic."""

    kind: str  # "joint", "late-action" or "product"
    observations: int
    actions: int
    hidden: Sizes

    @property
    def late(self) -> int:
        """Inputs that enter at the second layer."""
        return self.actions if self.kind == "late-action" else 0

    @property
    def networks(self) -> list[Sizes]:
        """The widths of its perceptrons."""
        seen, acted, hidden = self.observations, self.actions, self.hidden
        if self.kind == "product":
            return [(seen, *hidden, hidden[-1]), (acted, *hidden, hidden[-1])]
        return [(seen if self.late else seen + acted, *hidden, 1)]

    @property
    def parameters(self) -> int:
        """Numbers it occupies in a flat vector."""
        return sum(parameter_count(sizes, self.late) for sizes in self.networks)


class Critic:
    """One perceptron over observation and action, the action at the first or the second layer."""

    def __init__(self, shape: Shape, vector: Tensor, kernels: Kernels) -> None:
        """Read the parameters from `vector` (.., P)."""
        self.shape, self.vector = shape, vector
        self.networks = [Perceptron(shape.networks[0], vector, kernels, shape.late)]
        self._network = self.networks[0]
        self._seen = shape.observations

    def initialise(self, generator: torch.Generator, gain: str) -> None:
        """Draw the first weights."""
        for network in self.networks:
            network.initialise(generator, gain=gain)

    def tape(self, lead: Sizes) -> Any:
        """Room for the activations of inputs (*lead, n)."""
        return self._network.tape(lead)

    def forward(self, inputs: Tensor, tape: Any) -> Tensor:
        """Values (.., b, 1) of observations and actions side by side, (.., b, O + A)."""
        if not self.shape.late:
            return self._network.forward(inputs, tape)
        return self._network.forward(inputs[..., : self._seen], tape, inputs[..., self._seen :])

    def backward(self, gradient: Tensor, tape: Any, *, into: "Critic") -> None:
        """Write the parameters' gradient into the twin `into`, given that of the values."""
        self._network.backward(gradient, tape, into=into._network)

    def action_gradient(self, gradient: Tensor, tape: Any) -> Tensor:
        """Gradient of the actions, (.., b, A)."""
        return self._network.input_gradient(gradient, tape, first=self._seen)


class TowersTape(NamedTuple):
    """The activations of both towers, and their outputs."""

    observation: Tape
    action: Tape
    outputs: list[Tensor]  # (.., b, width) of the two towers


class ProductCritic(Critic):
    """A tower for the observation and one for the action; the value is their inner product."""

    def __init__(self, shape: Shape, vector: Tensor, kernels: Kernels) -> None:
        """Read the parameters from `vector` (.., P)."""
        self.shape, self.vector, self._seen = shape, vector, shape.observations
        parts = torch.split(vector, [parameter_count(sizes) for sizes in shape.networks], -1)
        pairs = zip(shape.networks, parts, strict=True)
        self.networks = [Perceptron(sizes, part, kernels) for sizes, part in pairs]

    def tape(self, lead: Sizes) -> TowersTape:
        """Room for the activations of inputs (*lead, n)."""
        first, second = (network.tape(lead) for network in self.networks)
        return TowersTape(first, second, [])

    def forward(self, inputs: Tensor, tape: TowersTape) -> Tensor:
        """Values (.., b, 1) of observations and actions side by side, (.., b, O + A)."""
        observation, action = self.networks
        tape.outputs[:] = (
            observation.forward(inputs[..., : self._seen], tape.observation),
            action.forward(inputs[..., self._seen :], tape.action),
        )
        return (tape.outputs[0] * tape.outputs[1]).sum(-1, keepdim=True)

    def backward(self, gradient: Tensor, tape: TowersTape, *, into: Critic) -> None:
        """Write the parameters' gradient into the twin `into`, given that of the values."""
        tapes = tape.observation, tape.action
        for index, (network, twin) in enumerate(zip(self.networks, into.networks, strict=True)):
            network.backward(gradient * tape.outputs[1 - index], tapes[index], into=twin)

    def action_gradient(self, gradient: Tensor, tape: TowersTape) -> Tensor:
        """Gradient of the actions, (.., b, A)."""
        return self.networks[1].input_gradient(gradient * tape.outputs[0], tape.action)


def make_critic(shape: Shape, vector: Tensor, kernels: Kernels) -> Critic:
    """The critic of that shape over the parameters in `vector` (.., P)."""
    kind = ProductCritic if shape.kind == "product" else Critic
    return kind(shape, vector, kernels)
