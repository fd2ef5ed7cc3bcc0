"""What a fleet's processes say to each other arrives as it was said."""

from multiprocessing import Pipe

import numpy as np
import pytest

from lser.fleet.messages import Act, Drawn, Give, Hear, Prepare, Ready, receive, send

MESSAGES = [
    Drawn(),
    Hear(0),
    Hear(1),
    Ready(),
    Ready((1, 2), (), True),
    Ready((), (3,)),
    Prepare(),
    Act(),
]


@pytest.mark.parametrize("times", [1, 3])
def test_every_message_arrives_as_itself(times):
    ours, theirs = Pipe()
    for message in MESSAGES * times:
        send(ours, message)
        found = receive(theirs)
        assert type(found) is type(message)
        assert found == message


def test_arrays_arrive_as_they_are_now():
    ours, theirs = Pipe()
    actor = np.zeros(3, np.float32)
    for value in (1, 2):
        actor[:] = value
        send(ours, Give({0: actor}))
        np.testing.assert_array_equal(receive(theirs).actors[0], actor)


def test_the_end_of_a_pipe_is_told():
    ours, theirs = Pipe()
    ours.close()
    with pytest.raises(EOFError):
        receive(theirs)
