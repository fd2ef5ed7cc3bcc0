"""Finding, downloading and reading VirtualTaobao's weights, against a server on this machine."""

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

from lser.simulators import weights
from lser.simulators.weights import (
    LAYERS,
    SHA256,
    VARIABLE,
    WeightsError,
    cache_folder,
    download,
    find_weights,
    generated_networks,
    load_networks,
)

BODY = bytes(np.random.default_rng(0).integers(0, 256, 200_000, dtype=np.uint8))
SUM = hashlib.sha256(BODY).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves BODY; breaks off the first `breaks` transfers; continues when `ranges`."""

    def do_GET(self):
        server = self.server
        start = 0
        asked = self.headers.get("Range")
        server.asked.append(asked)
        if self.path != "/file":
            self.send_error(404)
            return
        if asked and server.ranges:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            if start >= len(BODY):
                self.send_error(416)
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(BODY) - 1}/{len(BODY)}")
        else:
            self.send_response(200)
        rest = BODY[start:]
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        if server.breaks:
            server.breaks -= 1
            rest = rest[: len(rest) // 2]
        self.wfile.write(rest)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.breaks, server.ranges, server.asked = 0, True, []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def url(server):
    return f"http://127.0.0.1:{server.server_port}/file"


@pytest.fixture
def target(tmp_path):
    return tmp_path / "cache" / "file"


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


def test_a_download_lands_whole_with_nothing_beside_it(url, target):
    download(url, target, SUM)
    assert target.read_bytes() == BODY
    assert files(target.parent) == ["file"]


def test_a_transfer_that_breaks_off_is_continued(server, url, target):
    server.breaks = 2
    download(url, target, SUM)
    assert target.read_bytes() == BODY
    assert server.asked == [None, "bytes=100000-", "bytes=150000-"]


def test_what_arrived_is_kept_for_the_next_call(server, url, target):
    server.breaks = 2
    with pytest.raises(WeightsError, match="broke off 2 times"):
        download(url, target, SUM, attempts=2)
    assert files(target.parent) == ["file.part"]
    server.asked.clear()
    download(url, target, SUM)
    assert target.read_bytes() == BODY
    assert server.asked == ["bytes=150000-"]


def test_a_server_that_cannot_continue_sends_all_of_it_again(server, url, target):
    server.ranges, server.breaks = False, 1
    download(url, target, SUM)
    assert target.read_bytes() == BODY


def test_a_part_longer_than_the_file_is_thrown_away(url, target):
    target.parent.mkdir()
    target.with_name("file.part").write_bytes(BODY + b"more")
    download(url, target, SUM)
    assert target.read_bytes() == BODY


def test_a_wrong_checksum_leaves_nothing_behind(url, target):
    with pytest.raises(WeightsError, match=f"SHA-256 {SUM}, expected {'0' * 64}"):
        download(url, target, "0" * 64)
    assert files(target.parent) == []


def test_a_damaged_part_fails_once_and_then_starts_over(url, target):
    target.parent.mkdir()
    target.with_name("file.part").write_bytes(b"?" * 1000)
    with pytest.raises(WeightsError, match="SHA-256"):
        download(url, target, SUM)
    download(url, target, SUM)
    assert target.read_bytes() == BODY


def test_a_missing_file_is_an_error_that_names_the_three_ways(server, no_weights):
    source = f"http://127.0.0.1:{server.server_port}/nowhere"
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


@pytest.fixture
def serving_weights(monkeypatch, server):
    """The server's file as if it were each of the three released ones."""
    monkeypatch.setattr(weights, "SHA256", dict.fromkeys(SHA256, SUM))
    monkeypatch.setattr(
        Handler, "path", property(lambda _: "/file", lambda *_: None), raising=False
    )
    return f"http://127.0.0.1:{server.server_port}"


def test_weights_that_are_nowhere_are_downloaded_into_the_cache_once(
    server, serving_weights, no_weights
):
    assert find_weights(source=serving_weights) == no_weights
    assert files(no_weights) == sorted(SHA256)
    assert find_weights(source=serving_weights) == no_weights
    assert len(server.asked) == 3


def test_a_damaged_file_in_the_cache_is_downloaded_again(server, serving_weights, no_weights):
    find_weights(source=serving_weights)
    (no_weights / "leave_model.pt").write_bytes(b"damaged")
    find_weights(source=serving_weights)
    assert (no_weights / "leave_model.pt").read_bytes() == BODY
    assert len(server.asked) == 4


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
