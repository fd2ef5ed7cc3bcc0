"""The numbers in the drawing of the index, `lser.replay.index`, are what the index does."""

import numpy as np

from lser.replay import index as drawing_of_the_index
from lser.replay.index.blocks import key_value
from lser.replay.index.index import BucketIndex, Rules


def place(index, codes, rewards):
    ids, slots = index.place(np.array(codes, np.uint32), np.array(rewards, np.float32))
    return ids.tolist(), slots.tolist()


def drawn():
    """The index of the drawing."""
    index = BucketIndex(np.full(6, -1, np.int64), Rules())
    place(index, [5, 5, 9, 5, 9, 5], [0, 1, 2, 0, 0, 1])
    return index


def words(index, first, count):
    """Entries as the drawing writes them."""
    entries = index._held["arena"][first : first + count].tolist()
    return " ".join(f"r{key_value(word >> 32):g}|{word & 0xFFFFFFFF}" for word in entries)


def bucket(index, number):
    return {
        name: int(index._held["buckets"][name][number])
        for name in index._held["buckets"].dtype.names
    }


def test_buckets_are_runs_of_the_arena():
    index, text = drawn(), drawing_of_the_index.__doc__
    assert words(index, 0, 4) == "r1|5 r1|1 r0|3 r0|0"
    assert words(index, 4, 2) == "r2|2 r0|4"
    assert "|r1|5 r1|1 r0|3 r0|0|r2|2 r0|4  .  . |" in text
    for number in (0, 1):
        b = bucket(index, number)
        told = ", ".join(f"{name} {b[name]}" for name in ("code", "start", "count", "blocks"))
        assert f"{number}: {told}" in text
    table = index._held["table"]
    held = [int(word) for word in table if word != -1]
    assert [(word >> 32, word & 0xFFFFFFFF) for word in held] == [(9, 1), (5, 0)]


def test_a_push_goes_as_told():
    index = drawn()
    assert place(index, [5, 5, 7], [0, -1, 9]) == ([36, -1, -1], [0, -1, -1])
    assert words(index, 0, 4) == "r1|5 r1|1 r0|0 r0|3"
    assert index._held["ids"][0] == 36


def test_draws_go_as_told():
    index = drawn()
    place(index, [5], [0])
    assert index.pick(5, 3, 1.0).tolist() == [5, 1, 0]
    assert index.pick(5, 6, 1.0).tolist() == [5, 1, 0, 3, 5, 1]
    assert index.pick(13, 4, 1.0).tolist() == [5, 1, 2, 4]


def test_a_large_bucket_is_a_directory_of_blocks():
    index = BucketIndex(np.full(200, -1, np.int64), Rules())
    place(index, [5] * 65, range(65))
    b, arena = bucket(index, 0), index._held["arena"]
    assert (b["start"], b["count"], b["blocks"]) == (0, 65, 2)
    pairs = arena[:4].reshape(2, 2).tolist()
    described = [(key_value(key), where >> 8, where & 255) for key, where in pairs]
    assert described == [(64.0, 124, 1), (63.0, 60, 64)]
    assert words(index, 124, 1) == "r64|64"
    assert words(index, 60, 64).startswith("r63|63 r62|62")
