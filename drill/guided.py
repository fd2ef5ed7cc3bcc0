"""Coverage-guided fuzzing: ``python -m drill.guided files|records|packed|commands --seconds 600``.

It needs atheris (``pip install atheris``, in an environment of its own or in this one). A finding
is an exception that is no clear refusal, a crash of the interpreter, a hang or 4 GB of memory; its
input stays in the folder of --out, and ``python -m drill.guided TARGET INPUT...`` runs it again.

The first half hour had 96,822 executions (files 44,021, records 12,201, packed records 20,236,
commands 20,364) on one busy core, and no finding. These commands were refused for the most part
before they read anything; over a real run folder (`drill.commands`) the first inputs found agents
and checkpoints of another kind that ended in tracebacks, and 2,607 executions found no more. With
mutations of whole words out of the commands' help: commands 11,505, files 5,741, records 8,137,
packed records 5,730, in twenty minutes of a busy core, and no finding.
"""

import argparse
import contextlib
import importlib
import io
import json
import os
import re
import struct
import sys
import tempfile
import traceback
import zlib
from collections.abc import Callable
from pathlib import Path

from drill import commands

GOLDEN = Path(__file__).parents[1] / "tests" / "golden" / "files" / "4"
LARGEST = 1 << 20  # bytes of an array that a forged header asks for and gets
NAMES = ("experiment.json", "meta.json", "curve.jsonl", "final.json", "times.json")


def one_file(data: bytes) -> None:
    """Read bytes as a file: as they are, or as a header and contents with right checksums."""
    from drill.loading import load_and_use
    from lser.cli.check import findings

    path = Path("fuzzed.lser")
    path.write_bytes(data if data[:1] != b"{" else with_checksums(data))
    load_and_use(path)
    assert len(list(findings(path))) == 1


def with_checksums(data: bytes) -> bytes:
    """A file of a header (JSON, up to a zero byte) and the contents of its arrays."""
    import xxhash

    header, _, rest = data.partition(b"\0")
    written = bytearray(
        struct.pack("<8sIII", b"\x89LSER\r\n\x1a", 4, len(header), zlib.crc32(header)) + header
    )
    for length in _lengths(header):
        written += bytes(-len(written) % 64)
        part, rest = rest[:length].ljust(length, b"\0"), rest[length:]
        written += part + xxhash.xxh3_64(part).digest()
    return bytes(written)


def _lengths(header: bytes) -> list[int]:
    import numpy as np

    try:
        entries = json.loads(header)["arrays"]
        found = [
            int(np.prod(entry["shape"], dtype=object)) * np.dtype(str(entry["dtype"])).itemsize
            for entry in entries
        ]
    except (ValueError, TypeError, KeyError, RecursionError, AttributeError):
        return []
    return [length if 0 <= length <= LARGEST else 0 for length in found]


def one_record(data: bytes) -> None:
    """Read a record of which one file is these bytes; the first byte says which."""
    from lser.experiments import records

    folder = Path("record")
    for name in NAMES:
        (folder / name).write_bytes((GOLDEN / "record" / name).read_bytes())
    (folder / NAMES[data[0] % len(NAMES) if data else 0]).write_bytes(data[1:])
    assert len(records.find(folder)) == 1
    _listed("record", data)


def one_packed(data: bytes) -> None:
    """Read a packed file whose lines are these bytes."""
    import gzip

    from lser.experiments import records

    path = Path("record", "some.jsonl.gz")
    path.write_bytes(gzip.compress(data, 1))
    records.find(path)
    _listed(str(path), data)


def _listed(path: str, data: bytes) -> None:
    """One in eight is listed and checked by the commands too, which take longer."""
    from lser.cli import main

    if zlib.crc32(data) % 8 == 0:
        assert main(["runs", path]) == 0
        assert main(["check", path]) in (0, 1)
        assert main(["watch", path]) in (0, 1, 2)


def seeds(target: str) -> list[bytes]:
    """Inputs to begin with."""
    if target == "files":
        return [_opened(path.read_bytes()) for path in sorted(GOLDEN.glob("*.lser"))]
    if target == "records":
        return [
            bytes([number]) + (GOLDEN / "record" / name).read_bytes()
            for number, name in enumerate(NAMES)
        ]
    if target == "packed":
        parts = {
            name: json.loads((GOLDEN / "record" / f"{name}.json").read_text())
            for name in ("experiment", "meta", "final")
        }
        lines = (GOLDEN / "record" / "curve.jsonl").read_text().splitlines()
        return [json.dumps({**parts, "curve": [json.loads(line) for line in lines]}).encode()]
    return commands.seeds()


def _opened(data: bytes) -> bytes:
    """A saved file as header, zero byte and contents, without checksums."""
    length = struct.unpack("<8sIII", data[:20])[2]
    header, at, contents = data[20 : 20 + length], 20 + length, b""
    for size in _lengths(header):
        at += -at % 64
        contents += data[at : at + size]
        at += size + 8
    return header + b"\0" + contents


TARGETS: dict[str, Callable[[bytes], None]] = {
    "files": one_file,
    "records": one_record,
    "packed": one_packed,
    "commands": commands.one_command,
}


def prepare(out: Path) -> None:
    """Work in a folder of its own, in silence."""
    (out / "work" / "record").mkdir(parents=True, exist_ok=True)
    os.chdir(out / "work")
    import warnings

    warnings.simplefilter("ignore")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def compiled_modules() -> list[str]:
    """Modules with functions that become machine code: instrumented they would not compile."""
    source = Path(__file__).parents[1] / "src"
    return [
        ".".join(path.relative_to(source).with_suffix("").parts)
        for path in (source / "lser").rglob("*.py")
        if re.search(r"numba|from lser.compiled import", path.read_text())
    ]


def keep(error: Exception, data: bytes, out: Path, target: str) -> None:
    """Keep an input that did harm, one for each place in the code, and go on."""
    trace = traceback.extract_tb(error.__traceback__)
    place = "".join(f"{Path(frame.filename).name}:{frame.lineno} " for frame in trace[-3:])
    name = out / f"finding-{target}-{zlib.crc32(place.encode()):08x}"
    if not name.exists():
        name.write_bytes(data)
        name.with_suffix(".txt").write_text("".join(traceback.format_exception(error)))


def fuzz(target: str, out: Path, seconds: int) -> None:
    """Let atheris look for inputs that do harm; it ends the process."""
    import atheris

    with atheris.instrument_imports(include=["lser"], exclude=compiled_modules()):
        from lser.cli import COMMANDS

        for module in ("lser.replay", *(f"lser.cli.{name}" for name, _ in COMMANDS.values())):
            importlib.import_module(module)
    corpus = out / f"corpus-{target}"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(seeds(target)):
        (corpus / f"seed{number:02}").write_bytes(data)
    work = TARGETS[target]

    def tried(data: bytes) -> None:
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                work(data)
        except Exception as error:
            keep(error, data, out, target)

    words = set(
        re.findall(rb"\"([A-Za-z_][\w .-]{1,30})\"", b"".join(seeds("records") + seeds("files")))
    )
    listed = [f'"{word.decode()}"\n' for word in sorted(words) if word.isascii()]
    (out / "words.txt").write_text("".join(listed))
    options = [
        f"-dict={out}/words.txt",
        "-len_control=0",
        "-timeout=30",
        "-rss_limit_mb=4000",
        "-max_len=30000",
        "-print_final_stats=1",
    ]
    options += [f"-max_total_time={seconds}", f"-artifact_prefix={out}/finding-{target}-"]
    options += ["-ignore_crashes=1", "-ignore_timeouts=1", f"{corpus}"]
    import torch  # noqa: F401  # now: an import that a time limit ends is no finding

    prepare(out)
    known = commands.vocabulary() if target == "commands" else []

    def mutated(data: bytes, largest: int, seed: int) -> bytes:
        if known and seed % 4:  # whole words reach further than bytes
            return commands.changed_words(data, known, seed)[:largest]
        return bytes(atheris.Mutate(data, largest))

    atheris.Setup(["fuzz", *options], tried, custom_mutator=mutated)
    atheris.Fuzz()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m drill.guided", description=__doc__)
    parser.add_argument("target", choices=list(TARGETS))
    parser.add_argument("inputs", nargs="*", type=Path, help="run these once instead")
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--out", type=Path, default=Path(tempfile.gettempdir()) / "lser-fuzz")
    options = parser.parse_args()
    if not options.inputs:
        fuzz(options.target, options.out.resolve(), options.seconds)
        return 0
    inputs = [path.read_bytes() for path in options.inputs]
    prepare(options.out.resolve())
    for data in inputs:
        TARGETS[options.target](data)
    return 0


if __name__ == "__main__":
    sys.exit(main())
