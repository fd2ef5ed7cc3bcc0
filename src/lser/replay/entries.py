"""An entry of a bucket: one word, order key << 32 | slot."""

import numpy as np

from lser.replay.compiled import Num, kernel

SLOT = 0xFFFFFFFF


@kernel
def order_key(value: Num) -> Num:
    """A float32 as an integer of the same order; -0.0 and 0.0 are equal."""
    bits = np.int64(np.float32(np.float32(value) + np.float32(0.0)).view(np.int32))
    return bits if bits >= 0 else bits ^ np.int64(0x7FFFFFFF)


@kernel
def key_value(key: Num) -> Num:
    """The float32 of an order key."""
    bits = key if key >= 0 else key ^ np.int64(0x7FFFFFFF)
    return np.int32(bits).view(np.float32)
