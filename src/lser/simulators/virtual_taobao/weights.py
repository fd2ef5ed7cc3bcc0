"""VirtualTaobao's released weights: found in a folder or the cache, or downloaded and checked.

The files belong to the authors of VirtualTaobao (Shi, Yu, Da, Chen and Zeng, AAAI 2019) and are
free to use with credit. They are read as plain tensors and never executed as pickles.
"""

import hashlib
import os
import time
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


MOST_BYTES = 4 << 20  # of one file; the largest released one has 0.3 MB
LARGEST = 1e6  # weight: sums of such numbers stay finite; the released ones are below 100
MOST_WAITS = 10  # timeouts that one file may take in all, however steadily its bytes drip


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
    import pooch

    return Path(pooch.os_cache("lser")) / "virtual_taobao"


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
    if _problems(folder):
        _download(folder, source, timeout)
    return folder


def _download(folder: Path, source: str, timeout: float) -> None:
    """Put the released files into `folder`, each whole and checked or not at all."""
    import pooch

    cache = pooch.create(
        folder,
        base_url=f"{source}/",
        registry={name: f"sha256:{expected}" for name, expected in SHA256.items()},
        retry_if_failed=1,
    )
    try:
        for name in SHA256:
            cache.fetch(name, downloader=Transfer(timeout))
    except (OSError, ValueError) as error:  # no network, no such file, no place; a wrong file
        raise WeightsError(_three_ways(folder, source, error)) from error


class Transfer:
    """Downloads a file for pooch, up to a size and for a time; ValueError says what went wrong."""

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout

    def __call__(self, url: str, path: str, _cache: object) -> None:
        """Write what `url` serves to `path`."""
        import requests
        import urllib3

        deadline, left = time.monotonic() + MOST_WAITS * self.timeout, MOST_BYTES
        plain = {"Accept-Encoding": "identity"}
        with (
            requests.get(url, headers=plain, stream=True, timeout=self.timeout) as answer,
            Path(path).open("wb") as file,
        ):
            answer.raise_for_status()
            try:
                while part := answer.raw.read1(1 << 16):
                    left -= file.write(part)
                    if left < 0:
                        raise ValueError(f"{url} serves more than {MOST_BYTES:,} bytes")
                    if time.monotonic() > deadline:
                        raise ValueError(f"{url} took more than {MOST_WAITS * self.timeout:g} s")
            except urllib3.exceptions.HTTPError as error:
                raise ValueError(f"{url} broke off: {error}") from error


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
            if not (np.abs(weight) <= LARGEST).all() or not (np.abs(bias) <= LARGEST).all():
                raise WeightsError(f"layer {index} holds numbers beyond {LARGEST:g}, or not finite")
            layers.append(Layer(weight, bias))
    except Exception as error:  # whatever a damaged file makes the reader raise
        raise WeightsError(f"{path} does not hold VirtualTaobao weights: {error}") from error
    return tuple(layers)


def _is_released(path: Path) -> bool:
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == SHA256[path.name]


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
