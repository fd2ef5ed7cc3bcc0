"""Learners of many agents together: stacked on a device, or in turns on the CPU."""

from collections.abc import Sequence

import torch
from torch import Tensor

from lser.agents.device_stack import DeviceStack
from lser.agents.minibatch import BatchShape
from lser.agents.team import Stack, Team
from lser.agents.turns import Turns


def stack_shape(team: Team, batch_size: int, device: str) -> BatchShape:
    """How batches lie in the buffers of a stack on `device`: an accelerator unpacks them."""
    return team.batch_shape(batch_size, packed=torch.device(device).type != "cpu")


def make_stack(
    team: Team,
    batch_size: int,
    device: str,
    buffers: Sequence[Tensor] | None = None,
    *,
    urgent: bool = False,
) -> Stack:
    """The learners of `team` on `device`; `buffers` are on the host, two by default.

    Of several stacks on one device, updates of an `urgent` one come first.
    """
    shape = stack_shape(team, batch_size, device)
    given = buffers or [torch.zeros(shape.floats) for _ in range(2)]
    if torch.device(device).type == "cpu":
        return Turns(team, shape, given)
    return DeviceStack(team, shape, given, torch.device(device), urgent=urgent)
