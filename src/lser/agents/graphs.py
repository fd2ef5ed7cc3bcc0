"""Work on a CUDA device, recorded once and started as a whole."""

from collections.abc import Callable
from typing import Any

import torch

WARM_UPS = 3  # times the work is done before it is recorded: libraries allocate outside of it


def capture_graph(work: Callable[[], Any], priority: int) -> tuple[Any, Any]:
    """A CUDA graph of `work`, and what it returned while it was recorded.

    Its kernels keep the priority of the stream they were recorded on.
    """
    side = torch.cuda.Stream(priority=priority)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM_UPS):
            work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        result = work()
    return graph, result
