"""A limit for tests that might hang."""

import signal

import pytest


@pytest.fixture
def time_limit():
    """Nothing here may hang: a hard limit for every test."""

    def stop(*_):
        raise TimeoutError("a test of shards took longer than 200 s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(200)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
