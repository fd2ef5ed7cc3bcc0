"""VirtualTaobao's released weights: found in a folder or the cache, or downloaded and checked.

The files belong to the authors of VirtualTaobao (Shi, Yu, Da, Chen and Zeng, AAAI 2019) and are
free to use with credit. They are read as plain tensors and never executed as pickles.
"""

import hashlib
import http.client
import os
import sys
import urllib.error
import urllib.request
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lser.types import Float32

VARIABLE = "LSER_VIRTUAL_TAOBAO"
SOURCE = "https://github.com/eyounx/VirtualTaobao/raw/ff4f1cc/virtualTB/data"
SHA256 = {
    "generator_model.pt": "15f4f5b05df3de81016cde4b29379d24cf8b4fcb076d78055b06984137a983ac",
    "leave_model.pt": "022d7f88e180899bd8fe6b26b82b6ccca8bbb82d253b30ebac372534e8a2df12",
    "action_model.pt": "eceebf80181735459eec841cb1f73fa1a3f5f2796f68f4f8366a36d5e8da7be8",
}
LAYERS = {
    "generator_model.pt": (128, 128, 88),
    "leave_model.pt": (88, 128, 256, 101),
    "action_model.pt": (116, 128, 256, 21),
}


class WeightsError(RuntimeError):
    """The weights are missing, damaged or of the wrong shape; the message says what to do."""


class Layer(NamedTuple):
    """One affine layer: inputs @ weight + bias."""

    weight: Float32  # (inputs, outputs)
    bias: Float32  # (outputs,)


class Networks(NamedTuple):
    """The three networks of VirtualTaobao, each a stack of layers with LeakyReLU between."""

    generator: tuple[Layer, ...]  # noise -> logits of the user's features
    leave: tuple[Layer, ...]  # user -> logits of the page on which the user leaves
    action: tuple[Layer, ...]  # user, pages so far, action -> logits of clicks and second index


def cache_folder() -> Path:
    """Where downloaded weights are kept, by the platform's convention."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "lser" / "virtual_taobao"


def find_weights(
    path: str | Path | None = None, *, source: str = SOURCE, timeout: float = 30.0
) -> Path:
    """The folder that holds the three files, downloading them into the cache as a last resort.

    An explicit `path` may hold weights of your own; everywhere else the files must be the released
    ones, byte for byte.
    """
    if path is not None:
        folder = Path(path).expanduser()
        missing = [name for name in SHA256 if not (folder / name).is_file()]
        if missing:
            raise WeightsError(f"weights={str(path)!r} does not hold {', '.join(missing)}")
        return folder
    if os.environ.get(VARIABLE):
        folder = Path(os.environ[VARIABLE]).expanduser()
        problems = _problems(folder)
        if problems:
            raise WeightsError(f"{VARIABLE}={folder}: {'; '.join(problems)}")
        return folder
    folder = cache_folder()
    for name, expected in SHA256.items():
        if not _is_released(folder / name):
            try:
                download(f"{source}/{name}", folder / name, expected, timeout=timeout)
            except (OSError, http.client.HTTPException, WeightsError) as error:
                raise WeightsError(_three_ways(folder, source, error)) from error
    return folder


def download(
    url: str, target: Path, sha256: str, *, timeout: float = 30.0, attempts: int = 3
) -> None:
    """Put the file at `url` into `target`, whole and checked or not at all.

    An interrupted transfer is kept beside the target and continued, now or by the next call.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    kept = target.with_name(f"{target.name}.part")
    own = target.with_name(f"{target.name}.part-{os.getpid()}")  # nobody else appends to it
    with suppress(FileNotFoundError):
        kept.replace(own)
    try:
        for _ in range(attempts):
            if _transfer(url, own, timeout):
                break
        else:
            raise WeightsError(f"{url} broke off {attempts} times; the next call continues it")
        found = _sha256(own)
        if found != sha256:
            own.unlink()
            raise WeightsError(f"{url} has SHA-256 {found}, expected {sha256}")
        own.replace(target)
    finally:
        if own.exists():
            own.replace(kept)


def load_networks(folder: Path) -> Networks:
    """Read the three files as tensors and check their shapes."""
    return Networks(*(_read(folder / name, sizes) for name, sizes in LAYERS.items()))


def generated_networks(seed: int) -> Networks:
    """Random networks of the same shape: a stand-in for tests, with no meaning beyond that."""
    rng = np.random.default_rng(seed)

    def stack(sizes: tuple[int, ...]) -> tuple[Layer, ...]:
        return tuple(
            Layer(
                (rng.standard_normal((before, after)) * np.sqrt(2 / before)).astype(np.float32),
                (0.1 * rng.standard_normal(after)).astype(np.float32),
            )
            for before, after in pairwise(sizes)
        )

    return Networks(*(stack(sizes) for sizes in LAYERS.values()))


def _read(path: Path, sizes: tuple[int, ...]) -> tuple[Layer, ...]:
    import torch  # here alone, to read its file format: simulators do not need it otherwise

    try:
        tensors = torch.load(path, map_location="cpu", weights_only=True)
        layers = []
        for index, shape in enumerate(pairwise(sizes)):
            weight = np.ascontiguousarray(tensors[f"{2 * index}.weight"].numpy().T, np.float32)
            bias = np.asarray(tensors[f"{2 * index}.bias"].numpy(), np.float32)
            if weight.shape != shape or bias.shape != shape[1:]:
                raise WeightsError(f"layer {index} has shape {weight.shape}, expected {shape}")
            layers.append(Layer(weight, bias))
    except Exception as error:  # whatever a damaged file makes the reader raise
        raise WeightsError(f"{path} does not hold VirtualTaobao weights: {error}") from error
    return tuple(layers)


def _transfer(url: str, part: Path, timeout: float) -> bool:
    """Continue `part` from `url`; True when the whole file has arrived."""
    start = part.stat().st_size if part.exists() else 0
    headers = {"Range": f"bytes={start}-"} if start else {}
    try:
        answer = urllib.request.urlopen(
            urllib.request.Request(url, headers=headers), timeout=timeout
        )
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and start:  # nothing left to send, or another file: start over
            part.unlink()
            return False
        raise
    with answer, part.open("ab") as file:
        if answer.status != 206:  # the server does not continue: all of it comes again
            file.truncate(0)
        announced = answer.headers.get("Content-Length")
        received = 0
        with suppress(http.client.IncompleteRead, ConnectionError, TimeoutError):
            while block := answer.read(1 << 16):
                file.write(block)
                received += len(block)
            return announced is None or received == int(announced)
    return False


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _is_released(path: Path) -> bool:
    return path.is_file() and _sha256(path) == SHA256[path.name]


def _problems(folder: Path) -> list[str]:
    return [
        f"{name} {'is not the released file' if (folder / name).is_file() else 'is missing'}"
        for name in SHA256
        if not _is_released(folder / name)
    ]


def _three_ways(folder: Path, source: str, error: Exception) -> str:
    return (
        f"VirtualTaobao's weights are not in {folder} and the download failed ({error}). "
        f"Three ways to get them: (1) pass weights=<folder with {', '.join(SHA256)}>; "
        f"(2) set {VARIABLE} to such a folder; "
        f"(3) connect to the network, and they are downloaded from {source}. "
        "For a dry run without them: generated=True."
    )
