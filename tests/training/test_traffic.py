"""Which next observation and which flags are stored, for every horizon and autoreset mode."""

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from worlds import counting

from lser.training.traffic import Traffic

MODES = list(AutoresetMode)
ACTION = np.zeros((2, 1), np.float32)


def stored(mode, horizon, steps, truncates=False):
    """Each stream's stored transitions as tuples of plain numbers, in order."""
    traffic = Traffic(counting(mode, truncates), horizon)
    observation = traffic.reset(seed=0)
    streams = {0: [], 1: []}
    for _ in range(steps):
        arrival = traffic.step(observation, ACTION)
        rows = range(2) if arrival.streams is None else arrival.streams
        for place, stream in enumerate(rows):
            block = arrival.block
            streams[int(stream)].append(
                (
                    tuple(block.observation[place].tolist()),
                    round(float(block.reward[place]), 3),
                    tuple(block.next_observation[place].tolist()),
                    bool(block.terminated[place]),
                    bool(block.truncated[place]),
                )
            )
        observation = arrival.observation
    return streams


@pytest.mark.parametrize("mode", MODES)
def test_continuing_traffic_bootstraps_into_the_next_user(mode):
    assert stored(mode, "continuing", 9)[0][:4] == [
        ((0, 0), 0.1, (0, 1), False, False),
        ((0, 1), 0.2, (1, 0), False, True),
        ((1, 0), 1.1, (1, 1), False, False),
        ((1, 1), 1.2, (2, 0), False, True),
    ]


@pytest.mark.parametrize("mode", MODES)
def test_a_session_ends_with_the_user_s_own_last_observation(mode):
    assert stored(mode, "session", 9)[1][:4] == [
        ((100, 0), 100.1, (100, 1), False, False),
        ((100, 1), 100.2, (100, 2), False, False),
        ((100, 2), 100.3, (100, 3), True, False),
        ((101, 0), 101.1, (101, 1), False, False),
    ]


@pytest.mark.parametrize("mode", MODES)
def test_a_time_limit_truncates_and_never_terminates(mode):
    assert stored(mode, "session", 9, truncates=True)[0][1] == ((0, 1), 0.2, (0, 2), False, True)
    assert stored(mode, "continuing", 9, truncates=True)[0][1] == (
        (0, 1),
        0.2,
        (1, 0),
        False,
        True,
    )


@pytest.mark.parametrize("horizon", ["continuing", "session"])
def test_every_autoreset_mode_stores_the_same_experience(horizon):
    by_mode = [stored(mode, horizon, 12) for mode in MODES]
    for stream in (0, 1):
        shortest = min(len(streams[stream]) for streams in by_mode)
        assert shortest >= 6
        assert len({tuple(streams[stream][:shortest]) for streams in by_mode}) == 1


def test_steps_that_only_reset_are_not_stored():
    assert len(stored(AutoresetMode.NEXT_STEP, "session", 9)[0]) == 6  # 2 of every 3 steps


def test_an_unknown_horizon_is_refused():
    with pytest.raises(ValueError, match="horizon .* 'forever'"):
        Traffic(counting(AutoresetMode.SAME_STEP), "forever")


def test_an_environment_that_cannot_be_saved_says_so():
    with pytest.raises(ValueError, match="state_dict"):
        Traffic(counting(AutoresetMode.SAME_STEP)).state_dict()
