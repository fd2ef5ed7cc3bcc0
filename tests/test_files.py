"""Files are written whole or not at all, and a damaged one is refused with its reason."""

import errno
import json
import os
import struct
import zlib

import numpy as np
import pytest
from traffic import block_of

from lser import files, locks
from lser.files import State
from lser.replay import LocalityReplay, UniformReplay, load_replay

RNG = np.random.default_rng(0)


@pytest.fixture
def saved(tmp_path):
    replay = LocalityReplay(20, 3, 2, order="return")
    replay.extend(*block_of(RNG, 25))
    replay.save(tmp_path / "memory")
    return tmp_path / "memory"


def test_any_settings_and_arrays_come_back(tmp_path):
    arrays = {
        "empty": np.empty((0, 3), np.float32),
        "flags": np.array([True, False]),
        "big": RNG.standard_normal((40, 7)),
        "other": np.arange(3, dtype=">i4"),
        "sliced": np.arange(10)[::2],
    }
    config = {"a": 1, "b": [1.5, None, "x"], "c": {"d": 2**100}}
    files.save(tmp_path / "file", "thing", State(config, arrays))
    kind, state = files.load(tmp_path / "file")
    assert (kind, state.config) == ("thing", config)
    assert list(state.arrays) == list(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(state.arrays[name], array)


def test_objects_are_never_filed(tmp_path):
    state = State({}, {"x": np.array([object()])})
    with pytest.raises(ValueError, match="'x' has dtype object"):
        files.save(tmp_path / "file", "thing", state)
    assert os.listdir(tmp_path) == []


def test_every_truncation_is_refused(saved):
    whole = saved.read_bytes()
    for size in {*range(0, len(whole), 37), *range(60), len(whole) - 1}:
        saved.write_bytes(whole[:size])
        with pytest.raises(ValueError, match="truncated or corrupted|not a file that lser saved"):
            load_replay(saved)


def test_every_flipped_byte_is_refused(saved):
    whole = bytearray(saved.read_bytes())
    for at in (*range(64), *range(64, len(whole), 7)):
        whole[at] ^= 0x10
        saved.write_bytes(whole)
        with pytest.raises(ValueError):
            load_replay(saved)
        whole[at] ^= 0x10
    saved.write_bytes(whole)
    load_replay(saved)


def test_bytes_after_the_end_are_refused(saved):
    saved.write_bytes(saved.read_bytes() + b"x")
    with pytest.raises(ValueError, match="1 bytes follow its end"):
        load_replay(saved)


@pytest.mark.parametrize("content", [b"", b"\x80\x04K\x01.", b"\x93NUMPY" + b"x" * 99, b"x" * 500])
def test_a_foreign_file_is_refused(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ValueError, match="is not a file that lser saved"):
        load_replay(tmp_path / "file")


@pytest.mark.parametrize("version", [0, 1, 99])
def test_another_version_is_refused_by_number(saved, version):
    whole = bytearray(saved.read_bytes())
    whole[8:12] = struct.pack("<I", version)
    saved.write_bytes(whole)
    with pytest.raises(
        ValueError, match=f"format version {version}; this release reads {files.VERSION}"
    ):
        load_replay(saved)


def test_a_missing_file_is_reported_as_such(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_replay(tmp_path / "nothing")


def test_an_unknown_kind_is_refused(tmp_path):
    files.save(tmp_path / "file", "marble", State({}, {}))
    with pytest.raises(ValueError, match="holds a 'marble' memory, expected one of"):
        load_replay(tmp_path / "file")


@pytest.mark.parametrize("kind", ["uniform", "lser"])
def test_a_sound_file_without_the_needed_parts_is_refused(tmp_path, kind):
    for config in ({}, {"store": {}}, {"store": 3, "encoder": {}, "rules": {}}):
        files.save(tmp_path / "file", kind, State(config, {}))
        with pytest.raises(ValueError):
            load_replay(tmp_path / "file")


def _rewritten(path, change):
    """The file with its header changed, checksums and all."""
    whole = path.read_bytes()
    magic, version, length, _ = struct.unpack("<8sIII", whole[:20])
    header = json.loads(whole[20 : 20 + length])
    change(header)
    text = json.dumps(header).encode().ljust(length)
    path.write_bytes(struct.pack("<8sIII", magic, version, length, zlib.crc32(text)) + text)
    with path.open("ab") as file:
        file.write(whole[20 + length :])


@pytest.mark.parametrize(
    "change",
    [
        lambda h: h["arrays"][0].update(dtype="|O"),
        lambda h: h["arrays"][0].update(shape=[10**12, 10]),
        lambda h: h["arrays"][0].update(shape="x"),
        lambda h: h["arrays"][0].pop("shape"),
        lambda h: h.pop("config"),
        lambda h: h.update(config=[]),
        lambda h: h.update(arrays=3),
        lambda h: h["config"]["store"].update(capacity=3),
        lambda h: h["config"]["store"].update(action_dim=3),
        lambda h: h["config"]["own"]["encoder"].update(bits=40),
        lambda h: h["config"].update(rng=None),
    ],
)
def test_a_header_that_lies_is_refused(saved, change):
    _rewritten(saved, change)
    with pytest.raises(ValueError):
        load_replay(saved)


def test_an_index_that_does_not_fit_its_store_is_refused(saved, tmp_path):
    kind, state = files.load(saved)
    damages = {
        "slots": lambda a: a * 0,
        "sizes": lambda a: a + 1,
        "keys": lambda a: np.arange(len(a), dtype=np.float32),
        "codes": lambda a: a * 0,
    }
    for name, damage in damages.items():
        arrays = {**state.arrays, name: damage(state.arrays[name])}
        files.save(tmp_path / "odd", kind, State(state.config, arrays))
        with pytest.raises(ValueError, match="index"):
            load_replay(tmp_path / "odd")


def test_a_failed_save_leaves_the_earlier_file_and_no_other(saved, monkeypatch):
    before = saved.read_bytes()

    def fail(*_):
        raise OSError(errno.ENOSPC, "disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        UniformReplay(5, 3, 2).save(saved)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


def test_saving_replaces_the_earlier_file(saved):
    UniformReplay(5, 3, 2).save(str(saved))
    assert isinstance(load_replay(str(saved)), UniformReplay)
    assert os.listdir(saved.parent) == [saved.name]


def test_exchanged_and_zeroed_words_are_refused(tmp_path):
    path = tmp_path / "file"
    files.save(path, "thing", State({}, {"x": np.arange(1000)}))
    whole = path.read_bytes()
    start = -(-(20 + struct.unpack("<I", whole[12:16])[0]) // 64) * 64
    first, second = whole[start + 8 : start + 16], whole[start + 80 : start + 88]
    exchanged = whole.replace(first, second, 1)
    exchanged = exchanged[: start + 80] + first + exchanged[start + 88 :]
    zeroed = whole[: start + 800] + bytes(160) + whole[start + 960 :]
    for damaged in (exchanged, zeroed):
        assert len(damaged) == len(whole)
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="array 'x' does not match its checksum"):
            files.load(path)


def test_a_synced_file_is_on_the_disk_before_it_gets_its_name(tmp_path, monkeypatch):
    calls = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda d: (calls.append("fsync"), fsync(d)))
    monkeypatch.setattr(os, "replace", lambda a, b: (calls.append("replace"), replace(a, b)))
    files.save(tmp_path / "file", "thing", State({}, {}), sync=True)
    assert calls == ["fsync", "replace", "fsync"] if os.name == "posix" else ["fsync", "replace"]
    assert files.load(tmp_path / "file")[0] == "thing"


@pytest.mark.skipif(not locks.AVAILABLE, reason="needs locks on files")
@pytest.mark.parametrize("moment", ["before it is locked", "before it gets its name"])
def test_two_processes_may_save_into_one_file(tmp_path, monkeypatch, moment):
    """What another process sweeps away before it saves is never a file under way."""
    path, swept = tmp_path / "memory.lser", []
    lock, replace = locks.try_lock, os.replace

    def sweeping(real):
        def call(*arguments, **more):
            if not swept:
                swept.append(1)
                with monkeypatch.context() as other:
                    other.setattr(locks, "try_lock", lock)
                    files.sweep(tmp_path)
            return real(*arguments, **more)

        return call

    if moment == "before it is locked":
        monkeypatch.setattr(locks, "try_lock", sweeping(lock))
    else:
        monkeypatch.setattr(os, "replace", sweeping(replace))
    files.save(path, "uniform", files.State({"a": 1}, {}))
    assert swept
    assert files.load(path)[1].config == {"a": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["memory.lser"]
