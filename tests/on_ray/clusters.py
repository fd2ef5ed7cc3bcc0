"""A Ray cluster of several nodes on this machine, for tests: started, used, and always ended."""

import signal
import warnings
from contextlib import contextmanager

import pytest

STORE = 100 << 20  # bytes: Ray's least is 75 MB


@contextmanager
def cluster(nodes=2, cpus=1):
    """A head without cores and `nodes` nodes, and a connection to them; token authentication is on.

    They listen on 127.0.0.2: Ray takes 127.0.0.1 for the machine's routable address.
    """
    pytest.importorskip("ray")
    import ray
    from ray.cluster_utils import Cluster

    common = {"object_store_memory": STORE, "node_ip_address": "127.0.0.2"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = Cluster(
            initialize_head=True,
            head_node_args={"num_cpus": 0, "include_dashboard": False, **common},
        )
        try:
            made.workers = [made.add_node(num_cpus=cpus, **common) for _ in range(nodes)]
            ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
            made.wait_for_nodes()
            yield made
        finally:
            ray.shutdown()
            made.shutdown()


@contextmanager
def within(seconds):
    """A hard limit for what is inside, so that a cluster that hangs fails its test."""

    def late(_number, _frame):
        raise TimeoutError(f"not done within {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
