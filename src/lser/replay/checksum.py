"""A 64-bit checksum at the speed of memory: CRC-32 would take as long as writing the file.

The sum over all words of a bijection of word and place: a change within one word never goes
unnoticed, any other with probability 2**-64. Sums of integers may be taken in any order, so it
runs in vector registers. Not a defence against forgery.
"""

import numpy as np

from lser.replay.compiled import Num, UInt64, kernel

LENGTH = 8  # of a word and of the checksum, in bytes


@kernel
def _sum(words: UInt64, first: Num) -> Num:
    """The sum of words (n,), of which the first is word `first` of the whole."""
    total = np.uint64(0)
    for k in range(len(words)):
        x = words[k] + (np.uint64(first) + np.uint64(k)) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)  # as in SplitMix64
        total += x ^ (x >> np.uint64(32))
    return total


class Checksum:
    """Of bytes given part by part; all parts but the last are multiples of eight."""

    def __init__(self) -> None:
        self._total = self._words = 0

    def update(self, part: memoryview) -> None:
        """Take in the next part; the last word is completed with zeros."""
        whole = len(part) // LENGTH * LENGTH
        self._add(np.frombuffer(part[:whole], np.uint64))
        if whole < len(part):
            rest = bytes(part[whole:]).ljust(LENGTH, b"\0")
            self._add(np.frombuffer(rest, np.uint64))

    def _add(self, words: UInt64) -> None:
        self._total = (self._total + int(_sum(words, self._words))) % 2**64
        self._words += len(words)

    def digest(self) -> bytes:
        """The checksum of everything so far, eight bytes."""
        return self._total.to_bytes(LENGTH, "little")
