"""The written-out backward pass and the flat Adam equal autograd and torch.optim."""

import pytest
import torch
from agent_references import critic_twin, module_twin
from torch import Tensor, nn

from lser.agents.adam import Adam
from lser.agents.critics import Shape, make_critic
from lser.agents.kernels import PLAIN, STACKED
from lser.agents.perceptron import Perceptron, parameter_count

SHAPES = [(5, 7, 3), (91, 128, 128, 27), (118, 128, 128, 1), (3, 8, 8, 8, 2)]
KINDS = ["joint", "late-action", "product"]


def random_perceptron(sizes: tuple[int, ...]) -> Perceptron:
    generator = torch.Generator().manual_seed(3)
    vector = torch.randn(parameter_count(sizes), generator=generator) * 0.3
    return Perceptron(sizes, vector, PLAIN)


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
    gradients = Perceptron(sizes, torch.full_like(network.vector, torch.nan), PLAIN)
    inputs = torch.randn(16, sizes[0], generator=torch.Generator().manual_seed(1))
    inputs.requires_grad_(True)
    gradient = torch.randn(16, sizes[-1], generator=torch.Generator().manual_seed(2)) / 16
    expected = module(inputs)
    expected.backward(gradient)
    with torch.no_grad():
        tape = network.tape((16,))
        outputs = network.forward(inputs, tape)
        network.backward(gradient, tape, into=gradients)
        first = sizes[0] // 2
        input_gradient = network.input_gradient(gradient, tape, first=first)
    torch.testing.assert_close(outputs, expected, rtol=1e-5, atol=1e-6)
    assert inputs.grad is not None
    torch.testing.assert_close(input_gradient, inputs.grad[:, first:], rtol=1e-5, atol=1e-6)
    written = [view for layer in gradients.layers for view in layer[:4] if view.numel()]
    for ours, theirs in zip(written, twin_gradients(module), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kernels", [PLAIN, STACKED])
@pytest.mark.parametrize("kind", KINDS)
def test_every_critic_equals_autograd_alone_and_in_a_stack(kind: str, kernels: object) -> None:
    shape = Shape(kind, 5, 3, (16, 12))
    generator = torch.Generator().manual_seed(3)
    lead = () if kernels is PLAIN else (2,)
    vector = torch.randn(*lead, shape.parameters, generator=generator) * 0.3
    critic = make_critic(shape, vector, kernels)  # type: ignore[arg-type]
    into = make_critic(shape, torch.zeros_like(vector), kernels)  # type: ignore[arg-type]
    inputs = torch.randn(*lead, 9, 8, generator=generator)
    gradient = torch.randn(*lead, 9, 1, generator=generator)
    with torch.no_grad():
        tape = critic.tape((*lead, 9))
        values = critic.forward(inputs, tape)
        critic.backward(gradient, tape, into=into)
        values = critic.forward(inputs, tape)
        action_gradient = critic.action_gradient(gradient, tape)
    for slot in range(max(1, sum(lead))):
        of = (lambda x, slot=slot: x[slot]) if lead else (lambda x: x)
        parameters, given = of(vector).clone(), of(inputs).clone()
        parameters.requires_grad_(True)
        given.requires_grad_(True)
        expected = critic_twin(shape, parameters, given)
        expected.backward(of(gradient))
        assert parameters.grad is not None
        assert given.grad is not None
        torch.testing.assert_close(of(values), expected.detach(), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(of(into.vector), parameters.grad, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(of(action_gradient), given.grad[:, 5:], rtol=1e-4, atol=1e-5)


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


def test_gains_may_start_uniform_as_in_the_release() -> None:
    network = random_perceptron((91, 400, 300, 27))
    network.initialise(torch.Generator().manual_seed(0), gain="uniform")
    gain = network.layers[0].gain
    assert gain.min() >= 0
    assert gain.mean().item() == pytest.approx(0.5, abs=0.05)


def test_adam_equals_torch_optim_over_many_steps() -> None:
    generator = torch.Generator().manual_seed(0)
    ours = torch.randn(1000, generator=generator)
    theirs = ours.clone().requires_grad_(True)
    gradients = torch.empty(1000)
    adam = Adam(ours, gradients, [1e-2], PLAIN)
    reference = torch.optim.Adam([theirs], lr=1e-2)
    for step in range(300):
        gradients.copy_(torch.randn(1000, generator=generator) * 10.0 ** (step % 5 - 3))
        adam.step()
        theirs.grad = gradients.clone()
        reference.step()
    torch.testing.assert_close(ours, theirs.detach(), rtol=1e-5, atol=1e-6)
