"""The written-out backward pass and the flat Adam equal autograd and torch.optim."""

import pytest
import torch
from agent_references import module_twin
from torch import Tensor, nn

from lser.agents.networks import Perceptron, Tape, parameter_count, side_by_side
from lser.agents.optim import Adam

SHAPES = [(5, 7, 3), (91, 128, 128, 27), (118, 128, 128, 1), (3, 8, 8, 8, 2)]


def random_perceptron(sizes: tuple[int, ...]) -> Perceptron:
    generator = torch.Generator().manual_seed(3)
    vector = torch.randn(parameter_count(sizes), generator=generator) * 0.3
    return Perceptron(sizes, vector)


def twin_gradients(module: nn.Sequential) -> list[Tensor]:
    found = []
    for part in module:
        if isinstance(part, nn.Linear | nn.LayerNorm):
            assert part.weight.grad is not None
            assert part.bias.grad is not None
            found += [part.weight.grad.t(), part.bias.grad]
    found[-2] = found[-2].t()
    return found


@pytest.mark.parametrize("sizes", SHAPES)
def test_outputs_and_gradients_equal_autograd(sizes: tuple[int, ...]) -> None:
    network = random_perceptron(sizes)
    module = module_twin(network)
    gradients = Perceptron(sizes, torch.full_like(network.vector, torch.nan))
    inputs = torch.randn(16, sizes[0], generator=torch.Generator().manual_seed(1))
    inputs.requires_grad_(True)
    gradient = torch.randn(16, sizes[-1], generator=torch.Generator().manual_seed(2)) / 16
    expected = module(inputs)
    expected.backward(gradient)
    with torch.no_grad():
        tape = Tape(sizes[1:-1], 16, torch.device("cpu"))
        outputs = network.forward(inputs, tape)
        network.backward(gradient, tape, into=gradients)
        first = sizes[0] // 2
        input_gradient = network.input_gradient(gradient, tape, first=first)
    torch.testing.assert_close(outputs, expected, rtol=1e-5, atol=1e-6)
    assert inputs.grad is not None
    torch.testing.assert_close(input_gradient, inputs.grad[:, first:], rtol=1e-5, atol=1e-6)
    written = [view for layer in gradients.layers for view in layer if view.numel()]
    for ours, theirs in zip(written, twin_gradients(module), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def test_initial_weights_follow_linear_and_layer_norm_defaults() -> None:
    network = random_perceptron((91, 400, 300, 27))
    network.initialise(torch.Generator().manual_seed(0))
    fans = ((91, 1.0), (400, 1.0), (300, 0.1))
    for layer, (inputs, scale) in zip(network.layers, fans, strict=True):
        bound = scale * inputs**-0.5
        assert layer.weight.abs().max() <= bound
        assert layer.bias.abs().max() <= bound
        assert layer.weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.03)
        assert (layer.gain == 1).all()
        assert (layer.shift == 0).all()


def test_networks_side_by_side_share_one_vector_and_do_not_overlap() -> None:
    sizes = [(3, 4, 2), (5, 4, 1), (5, 4, 1)]
    vector, first, others = side_by_side(sizes, torch.device("cpu"))
    for number, network in enumerate((first, *others), start=1):
        assert network.vector.data_ptr() % 64 == vector.data_ptr() % 64
        for layer in network.layers:
            for view in layer:
                view += number
    for number, network in enumerate((first, *others), start=1):
        assert all((view == number).all() for layer in network.layers for view in layer)


def test_adam_equals_torch_optim_over_many_steps() -> None:
    generator = torch.Generator().manual_seed(0)
    ours = torch.randn(1000, generator=generator)
    theirs = ours.clone().requires_grad_(True)
    gradients = torch.empty(1000)
    adam = Adam(ours, gradients, rate=1e-2)
    reference = torch.optim.Adam([theirs], lr=1e-2)
    for step in range(300):
        gradients.copy_(torch.randn(1000, generator=generator) * 10.0 ** (step % 5 - 3))
        adam.step()
        theirs.grad = gradients.clone()
        reference.step()
    torch.testing.assert_close(ours, theirs.detach(), rtol=1e-5, atol=1e-6)
