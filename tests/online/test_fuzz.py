"""Malformed requests, made from the service's own description: no crash, no dishonest 5xx.

LSER_FUZZ sets how many; `make drill` asks for 10,000.
"""

import os

import pytest
from drill.malformed import fuzz

COUNT = int(os.environ.get("LSER_FUZZ", "600"))


@pytest.mark.slow
def test_malformed_requests_are_answered_honestly(tmp_path):
    seen, broken = fuzz(tmp_path, COUNT)
    assert broken == []
    assert {200, 400, 404, 422} <= set(seen)
