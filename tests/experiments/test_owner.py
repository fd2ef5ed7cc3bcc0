"""One owner for a folder: who writes, who has died, and who cannot be told from here."""

import json
import multiprocessing
import os
import socket
import threading
import time

import pytest

from lser.experiments import owner, records
from lser.experiments.owner import OWNER, Owner, owned
from lser.experiments.recording import Recorder
from waiting import until


def hold(folder, ready, go_on):
    """Own the folder in this process until told; then end without letting go."""
    held = Owner(folder)
    ready.set()
    go_on.wait(120)
    os._exit(0 if held else 1)


def test_the_owner_is_named_in_the_folder(tmp_path):
    with Owner(tmp_path / "new"):
        named = json.loads((tmp_path / "new" / OWNER).read_text())
    assert named == {"pid": os.getpid(), "host": socket.gethostname()}


def test_a_shorter_name_leaves_nothing_of_a_longer_one(tmp_path):
    (tmp_path / OWNER).write_text("x" * 500)
    with Owner(tmp_path):
        assert json.loads((tmp_path / OWNER).read_text())["pid"] == os.getpid()


def test_another_process_keeps_it_until_it_ends(tmp_path):
    context = multiprocessing.get_context("spawn")
    ready, go_on = context.Event(), context.Event()
    process = context.Process(target=hold, args=(tmp_path, ready, go_on))
    process.start()
    assert ready.wait(120)
    assert owned(tmp_path)
    with pytest.raises(ValueError, match=rf"another process \(process {process.pid} on "):
        Owner(tmp_path)
    go_on.set()
    process.join()
    assert not owned(tmp_path)  # the system took the lock from the dead
    Owner(tmp_path).release()


def test_looking_does_not_keep_an_owner_out(tmp_path, monkeypatch):
    Owner(tmp_path).release()
    looks, over = [], threading.Event()

    def look():
        while not over.is_set():
            looks.append(owned(tmp_path))

    thread = threading.Thread(target=look)
    thread.start()
    monkeypatch.setattr(owner, "_PATIENCE", 30.0)
    try:
        for _ in range(20):
            Owner(tmp_path).release()
        until(lambda: looks)
    finally:
        over.set()
        thread.join()


def test_a_busy_folder_is_waited_for_a_moment_only(tmp_path, monkeypatch):
    monkeypatch.setattr(owner, "_PATIENCE", 0.1)
    began = time.monotonic()
    with Owner(tmp_path), pytest.raises(ValueError, match="written by another"):
        Owner(tmp_path)
    assert time.monotonic() - began >= 0.1


def test_letting_go_twice_is_once(tmp_path):
    first = Owner(tmp_path)
    first.release()
    second = Owner(tmp_path)
    first.release()  # not the second's lock
    assert owned(tmp_path)
    second.release()


def test_an_owner_that_is_forgotten_lets_go(tmp_path):
    Owner(tmp_path)
    assert not owned(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"pid": "x", "host": 1}', "[" * 10_000])
def test_a_name_that_cannot_be_read_is_no_other_machine(text, tmp_path):
    (tmp_path / OWNER).write_text(text)
    elsewhere = text.startswith('{"pid"')  # it names some host, and not this one
    assert owned(tmp_path) == elsewhere


def test_a_holder_without_a_name_is_said_so(tmp_path, monkeypatch):
    monkeypatch.setattr(owner, "_PATIENCE", 0.0)
    with Owner(tmp_path):
        (tmp_path / OWNER).write_text("")
        with pytest.raises(ValueError, match="which has not said its name yet"):
            Owner(tmp_path)


def test_a_folder_nobody_ever_owned(tmp_path):
    assert not owned(tmp_path)
    assert not owned(tmp_path / "nowhere")
    assert not list(tmp_path.iterdir())  # asking leaves nothing


def test_a_record_is_running_only_while_it_is_owned(tmp_path):
    experiment = {part: {"name": "x"} for part in ("simulator", "memory", "agent")}
    recorder = Recorder(tmp_path, {**experiment, "seed": 0}, "")
    with Owner(tmp_path):
        recorder.begin("ctr")
        assert records.load(tmp_path).status == "running"
    assert records.load(tmp_path).status == "died"
    recorder.pause()
    assert records.load(tmp_path).status == "stopped"
