"""Finding, downloading and reading VirtualTaobao's weights, against a server on this machine."""

import contextlib
import hashlib
import http.server
import pickle
import socket
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from released import released_folder

from lser.simulators.virtual_taobao import weights
from lser.simulators.virtual_taobao.weights import (
    LAYERS,
    SHA256,
    VARIABLE,
    WeightsError,
    cache_folder,
    find_weights,
    generated_networks,
    load_networks,
)

BODY = bytes(np.random.default_rng(0).integers(0, 256, 200_000, dtype=np.uint8))
SUM = hashlib.sha256(BODY).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves BODY for each of the three files; breaks off the first `breaks` transfers."""

    def do_GET(self):
        server = self.server
        server.asked.append(self.path)
        if self.path.removeprefix("/") not in SHA256:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        broken = server.breaks > 0
        server.breaks -= 1
        self.wfile.write(BODY[: len(BODY) // 2] if broken else BODY)

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    """A server of files as if they were the released ones; nobody waits between attempts."""
    monkeypatch.setattr(weights, "SHA256", dict.fromkeys(SHA256, SUM))
    monkeypatch.setattr("pooch.core.time.sleep", lambda seconds: None)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.breaks, server.asked = 0, []
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def no_weights(monkeypatch, tmp_path):
    """A user who has the weights nowhere; returns the cache folder."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    return cache_folder()


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def unused_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_weights_that_are_nowhere_are_downloaded_into_the_cache_once(server, no_weights):
    assert find_weights(source=server.url) == no_weights
    assert files(no_weights) == sorted(SHA256)
    assert find_weights(source=server.url) == no_weights
    assert len(server.asked) == 3


def test_a_damaged_file_in_the_cache_is_downloaded_again(server, no_weights):
    find_weights(source=server.url)
    (no_weights / "leave_model.pt").write_bytes(b"damaged")
    find_weights(source=server.url)
    assert (no_weights / "leave_model.pt").read_bytes() == BODY
    assert server.asked[3:] == ["/leave_model.pt"]


def test_a_transfer_that_breaks_off_is_tried_again(server, no_weights):
    server.breaks = 1
    find_weights(source=server.url)
    assert {path.read_bytes() for path in no_weights.iterdir()} == {BODY}
    assert files(no_weights) == sorted(SHA256)


def test_nothing_is_left_of_a_transfer_that_keeps_breaking_off(server, no_weights):
    server.breaks = 10
    with pytest.raises(WeightsError, match="the download failed"):
        find_weights(source=server.url)
    assert files(no_weights) == []
    server.breaks = 0
    assert find_weights(source=server.url) == no_weights


def test_nothing_is_left_of_a_file_with_another_checksum(server, monkeypatch, no_weights):
    monkeypatch.setattr(weights, "SHA256", dict.fromkeys(SHA256, "0" * 64))
    with pytest.raises(WeightsError, match=f"{SUM}"):
        find_weights(source=server.url)
    assert files(no_weights) == []


def test_a_missing_file_is_an_error_that_names_the_three_ways(server, no_weights):
    source = f"{server.url}/nowhere"
    with pytest.raises(WeightsError, match="404") as error:
        find_weights(source=source)
    for way in ("weights=", VARIABLE, source):
        assert way in str(error.value)


def test_offline_is_an_error_that_names_the_three_ways(no_weights):
    source = f"http://127.0.0.1:{unused_port()}"
    with pytest.raises(WeightsError, match=f"weights=.*{VARIABLE}.*{source}"):
        find_weights(source=source, timeout=5)


def test_a_silent_server_is_given_up_after_the_timeout(no_weights):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with pytest.raises(WeightsError, match="timed out"):
            find_weights(source=f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.2)


class Endless(http.server.BaseHTTPRequestHandler):
    """Serves bytes without end: many at once or, with `pause`, one after the other."""

    pause = 0.0

    def do_GET(self):
        self.send_response(200)
        if self.pause:
            self.send_header("Content-Length", "no number")
        self.end_headers()
        with contextlib.suppress(OSError):
            while not self.server.over.wait(self.pause):
                self.wfile.write(bytes(1 if self.pause else 1 << 16))

    def log_message(self, *args):
        pass


@pytest.mark.parametrize(("pause", "words"), [(0.0, "more than 4,194,304 bytes"), (0.01, "1 s")])
def test_a_file_without_end_is_given_up(monkeypatch, no_weights, pause, words):
    monkeypatch.setattr("pooch.core.time.sleep", lambda seconds: None)
    handler = type("Chosen", (Endless,), {"pause": pause})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.over = threading.Event()
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            with pytest.raises(WeightsError, match=words):
                find_weights(source=f"http://127.0.0.1:{server.server_port}", timeout=0.1)
        finally:
            server.over.set()
            server.shutdown()
            thread.join()
    assert files(no_weights) == []


def test_a_cache_that_cannot_be_written_is_an_error_that_names_the_three_ways(server, no_weights):
    no_weights.parent.parent.mkdir(parents=True, exist_ok=True)
    no_weights.parent.write_text("a file where a folder should be")
    with pytest.raises(WeightsError, match=f"weights=.*{VARIABLE}"):
        find_weights(source=server.url)


def test_an_explicit_path_comes_before_the_variable(monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "elsewhere"))
    for name in SHA256:
        (tmp_path / name).touch()
    assert find_weights(tmp_path) == tmp_path


def test_an_explicit_path_without_the_files_is_an_error(tmp_path):
    (tmp_path / "leave_model.pt").touch()
    with pytest.raises(WeightsError, match=r"does not hold generator_model\.pt, action_model\.pt"):
        find_weights(tmp_path)


def test_a_variable_that_points_at_other_files_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    (tmp_path / "leave_model.pt").touch()
    with pytest.raises(WeightsError, match=r"leave_model\.pt is not the released file") as error:
        find_weights()
    assert "action_model.pt is missing" in str(error.value)


def test_the_variable_comes_before_the_cache(monkeypatch):
    folder = released_folder()
    if folder is None:
        pytest.skip(f"released weights not found: set {VARIABLE} or LSER_SHARED")
    monkeypatch.setenv(VARIABLE, str(folder))
    assert find_weights() == folder


def save(folder: Path, change=lambda tensors: tensors):
    """Write generated networks in the release's format."""
    for name, layers in zip(LAYERS, generated_networks(0), strict=True):
        tensors = {}
        for index, layer in enumerate(layers):
            tensors[f"{2 * index}.weight"] = torch.from_numpy(layer.weight.T.copy())
            tensors[f"{2 * index}.bias"] = torch.from_numpy(layer.bias)
        torch.save(change(tensors), folder / name)


def test_networks_are_read_as_they_were_written(tmp_path):
    save(tmp_path)
    for found, expected in zip(load_networks(tmp_path), generated_networks(0), strict=True):
        for layer, same in zip(found, expected, strict=True):
            np.testing.assert_array_equal(layer.weight, same.weight)
            np.testing.assert_array_equal(layer.bias, same.bias)


def test_networks_of_another_shape_are_an_error(tmp_path):
    save(tmp_path, lambda tensors: {key: value[:-1] for key, value in tensors.items()})
    with pytest.raises(WeightsError, match=r"generator_model\.pt.*shape"):
        load_networks(tmp_path)


def test_weights_that_are_not_finite_are_an_error(tmp_path):
    save(tmp_path, lambda tensors: {key: value * np.nan for key, value in tensors.items()})
    with pytest.raises(WeightsError, match=r"generator_model\.pt.*not finite"):
        load_networks(tmp_path)


class Bomb:
    """A pickle that would call something when loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return partial(open, self.path, "w"), ()


def test_a_pickle_with_code_is_refused_and_not_run(tmp_path):
    save(tmp_path)
    trace = tmp_path / "ran"
    (tmp_path / "generator_model.pt").write_bytes(pickle.dumps(Bomb(str(trace))))
    with pytest.raises(WeightsError, match=r"generator_model\.pt does not hold"):
        load_networks(tmp_path)
    assert not trace.exists()


def test_the_simulator_modules_import_without_torch():
    code = "import sys, lser.simulators.virtual_taobao; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
