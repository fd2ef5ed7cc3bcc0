"""Files that lie: bytes damaged at random, and contents changed under checksums that are right."""

import json
import random
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from lser import files

NUMBERS = (-1, 0, 1, 2, 7, 10**6, 2**31, 2**40, 2**62, -(2**62), 1e308, -1e308, 0.5, float("nan"))
ODD: tuple[Any, ...] = (*NUMBERS, None, True, "", "x", "../../x", [], {}, [1], {"a": 1})


def damaged(data: bytes, chance: random.Random) -> bytes:
    """The bytes with a flip, a cut, a zeroed or a repeated part."""
    broken = bytearray(data)
    at = chance.randrange(len(data))
    match chance.randrange(5):
        case 0:
            broken[at] ^= 1 << chance.randrange(8)
        case 1:
            del broken[at:]
        case 2:
            length = min(chance.choice((8, 64, 512)), len(data) - at)
            broken[at : at + length] = bytes(length)
        case 3:
            broken += data[: chance.randrange(1, 64)]
        case _:
            del broken[at : at + chance.randrange(1, 64)]
    return bytes(broken)


def forged(path: Path, target: Path, chance: random.Random) -> None:
    """Write a file with something of `path` changed, all checksums right."""
    kind, state = files.load(path)
    config = json.loads(json.dumps(state.config))
    arrays = {name: np.array(array) for name, array in state.arrays.items()}
    for _ in range(chance.choice((1, 1, 2, 4))):
        if chance.random() < 0.35 or not arrays:
            _change_setting(config, chance)
        else:
            _change_array(arrays, chance)
    files.save(target, kind, files.State(config, arrays))
    if chance.random() < 0.1:
        _change_header(target, chance)


def _leaves(node: Any) -> Iterator[tuple[Any, Any]]:
    pairs: Any = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in pairs:
        yield node, key
        if isinstance(value, dict | list):
            yield from _leaves(value)


def _change_setting(config: Any, chance: random.Random) -> None:
    places = list(_leaves(config))
    if not places:
        return
    node, key = chance.choice(places)
    value = node[key]
    if chance.random() < 0.2 and isinstance(node, dict):
        del node[key]
    elif isinstance(value, int) and not isinstance(value, bool) and chance.random() < 0.5:
        node[key] = value + chance.choice((-1, 1, 100))
    else:
        node[key] = chance.choice(ODD)


def _change_array(arrays: dict[str, Any], chance: random.Random) -> None:
    name = chance.choice(sorted(arrays))
    array = arrays[name]
    match chance.randrange(6):
        case 0:
            arrays[name] = array[: len(array) // 2] if array.ndim else array
        case 1:
            arrays[name] = array.reshape(-1)
        case 2:
            with np.errstate(all="ignore"):
                kinds = (np.int8, np.float32, np.uint64, np.int64)
                arrays[name] = array.astype(chance.choice(kinds))
        case 3:
            del arrays[name]
        case _ if array.size:
            flat = array.reshape(-1)
            spots = chance.sample(range(flat.size), min(flat.size, chance.choice((1, 3, 50))))
            value = chance.choice(NUMBERS)
            with np.errstate(all="ignore"):
                flat[spots] = np.array(value, np.float64).astype(array.dtype)
            if array.dtype.kind in "iu" and chance.random() < 0.5:
                flat[spots] = chance.randrange(0, 100)


def _change_header(path: Path, chance: random.Random) -> None:
    data = path.read_bytes()
    magic, version, length, _ = struct.unpack("<8sIII", data[:20])
    header = json.loads(data[20 : 20 + length])
    entry = chance.choice(header["arrays"] or [{}])
    entry["shape"] = chance.choice(([-1], [2**62], [2**40, 2**40], [0], ["a"], None, [1.5], [[]]))
    text = json.dumps(header).encode()
    prefix = struct.pack("<8sIII", magic, version, len(text), zlib.crc32(text))
    path.write_bytes(prefix + text + data[20 + length :])
