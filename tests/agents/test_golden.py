"""The numbers of a single agent on the CPU do not move."""

import numpy as np
import pytest
from golden_agents import FILE, courses


@pytest.mark.parametrize("agent", ["DDPG", "TD3", "SAC"])
def test_an_agents_course_is_the_frozen_one(agent: str) -> None:
    found = courses()
    with np.load(FILE) as frozen:
        names = [name for name in frozen.files if name.startswith(agent)]
        assert names
        for name in names:
            np.testing.assert_allclose(
                found[name], frozen[name], rtol=1e-5, atol=2e-6, err_msg=name
            )
