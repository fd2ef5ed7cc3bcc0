"""Command lines for `drill.guided`: real commands over a real run folder, any part of it changed.

An input is words, one a line, and then, each after a zero byte, files of the folder that are other
than they were: a byte that says which, and the contents.
"""

import contextlib
import io
import json
import random
import re
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

GOLDEN = Path(__file__).parents[1] / "tests" / "golden" / "files" / "4"
IDLE = ("serve", "learn")  # commands that would wait: they get a word that they refuse
SLOW = ("--sessions", "2")  # of evaluations
SELDOM = ("simulators", "study")  # commands that take a second: one in sixteen of their inputs
VALUES = [
    *("0", "1", "-1", "2", "1.5", "1e400", "nan", "inf", "-inf", "1e-320", "9" * 20, "0x10", "1_0"),
    *(
        "True",
        "none",
        "null",
        ".",
        "..",
        "-",
        "--",
        "{}",
        "[]",
        "../x",
        "a/b",
        "a:b",
        "é",
        "\u202e",
    ),
    *("\x1b[31m", "%", "%s", "{x}", "$x", "*", "?", "~", "@x", "=1"),
    *("record", "memory.lser", "log.csv"),
]
ITEMS = "id,v0,v1\na,0.1,0.2\nb,0.3,0.4\nc,0.5,0.1\n"
CLICKS = "user,item,time,clicked\nu,a,1.0,1\nu,b,2.0,0\n"
LOG = "o0,o1,a0,reward\n" + "".join(f"0.{k},0.{9 - k},0.5,{k % 2}\n" for k in range(9))


def folder() -> dict[str, bytes]:
    """Everything that commands are given to read, by its name."""
    names = ("experiment.json", "meta.json", "curve.jsonl", "final.json", "times.json")
    found = {f"record/{name}": (GOLDEN / "record" / name).read_bytes() for name in names}
    now = {"sessions": 3, "of": 9, "metric": "ctr", "so_far": 0.1, "evaluation": 0.2, "left": 5.0}
    found["record/progress.json"] = json.dumps(now).encode()
    found["record/checkpoints/000000000001.lser"] = (GOLDEN / "checkpoint.lser").read_bytes()
    found["record/agent/000000000000.lser"] = (GOLDEN / "checkpoint.lser").read_bytes()
    found["memory.lser"] = (GOLDEN / "uniform.lser").read_bytes()
    found["answer.json"] = json.dumps(_policies()).encode()
    texts = {"items.csv": ITEMS, "clicks.csv": CLICKS, "log.csv": LOG}
    return found | {name: text.encode() for name, text in texts.items()}


def _policies() -> dict[str, Any]:
    one = {"version": 1, "state": "live", "pages": 10, "updates": 3, "problems": []}
    return {"lser": {"versions": [one], "held": False}}


def one_command(data: bytes) -> None:
    """Give the command line these words over these files; nothing long is started."""
    from lser.cli import COMMANDS, main

    text, *changed = data.split(b"\0")
    files = folder()
    for part in changed:
        if part:
            files[list(files)[part[0] % len(files)]] = part[1:]
    shutil.rmtree("shop", ignore_errors=True)
    for name, contents in files.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents)
    words = [
        word.replace("..", "_").lstrip("/") for word in text.decode("utf-8", "replace").split("\n")
    ][:14]
    if words[0] not in COMMANDS and zlib.crc32(text) % 8:  # most inputs reach a command
        words[0] = list(COMMANDS)[zlib.crc32(text) % len(COMMANDS)]
    if words[0] in SELDOM and zlib.crc32(data) % 16:
        words[0] = "train"
    words += ["--no-such-option"] if words[0] in IDLE else []
    words += SLOW if words[0] == "evaluate" and "--log" not in text.decode("latin1") else ()
    with nothing_long(), contextlib.suppress(SystemExit):
        assert main(words) in (0, 1, 2, 130)


def vocabulary() -> list[str]:
    """Every word that a command's help names, and values that are hard to read."""
    from lser.cli import COMMANDS, main

    words = {*COMMANDS, *VALUES}
    for name in COMMANDS:
        for more in ([], ["bazaar"], ["bazaar", "lser"], ["taobao", "per", "sac"]):
            told = io.StringIO()
            with contextlib.redirect_stdout(told), contextlib.suppress(SystemExit):
                main([name, *(more if name == "train" else []), "--help"])
            words |= set(re.findall(r"--[a-z][\w.-]+|\b[a-z][a-z0-9_-]{2,20}\b", told.getvalue()))
            if name != "train":
                break
    return sorted(words)


def changed_words(data: bytes, known: list[str], seed: int) -> bytes:
    """The same input with a word or two put in, taken out or exchanged, and its files as before."""
    rng = random.Random(seed)
    text, *files = data.split(b"\0")
    words = text.split(b"\n")
    options = [word for word in known if word.startswith("--")]
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(words)) if words else 0
        match rng.randrange(4):
            case 0 if len(words) > 1:
                del words[at]
            case 1 if words:
                words[at] = rng.choice(known).encode()
            case 2:
                words.insert(at + 1, rng.choice(known).encode())
            case _:
                words += [rng.choice(options).encode(), rng.choice(VALUES).encode()]
    return b"\0".join([b"\n".join(words), *files])


@contextlib.contextmanager
def nothing_long() -> Iterator[None]:
    """No run, no drawing, no network."""
    answer = mock.patch("lser.cli.policy._ask", side_effect=_answer)
    with contextlib.ExitStack() as stack:
        for place in ("compare", "study", "jobs"):
            stack.enter_context(mock.patch(f"lser.cli.{place}.run_jobs", return_value=0))
        stack.enter_context(mock.patch("lser.cli.train.execute", return_value=0))
        stack.enter_context(mock.patch("lser.report.build_report", side_effect=_read))
        stack.enter_context(answer)
        yield


def _answer(*_: object) -> Any:
    try:
        return json.loads(Path("answer.json").read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(str(error)) from None


def _read(found: Any, out: Path, *, title: str) -> Path:
    """What a report says, without its figures."""
    from lser.report.closing import closing

    closing(found)
    return out / title


def seeds() -> list[bytes]:
    """Command lines to begin with, each over the folder as it is and with a part changed."""
    from lser.cli import COMMANDS

    lines = [f"{name}\n--help" for name in COMMANDS]
    lines += ["train\nbazaar\nlser\n--memory.bits\n4\n--seed\n1\n--sessions\n10\n--out\nx"]
    lines += ["train\n--from\nrecord\n--seed\n3", "study\nablation\n--scale\nquick\n--dry-run"]
    lines += ["study\nepsilon\n--only\nx|y\n--dry-run\n--engine\nfleet\n--workers\n3"]
    lines += ["runs\nrecord", "runs\nrecord\n--json", "check\n.", "check\nmemory.lser"]
    lines += ["report\nrecord\n--out\npage", "report\nrecord\n--title\nx", "resume\nrecord"]
    lines += ["theory\n--bits\n8\n--angle\n20", "theory\n--distance\n1\n--width\n4\n--json"]
    lines += ["inspect\nlog.csv\n--bits\n2\n3\n--rows\n8", "inspect\nmemory.lser\n--json"]
    lines += ["inspect\nrecord", "evaluate\nrecord\n--json", "watch\nrecord\n--once"]
    lines += ["compare\nlser\nuniform\n--on\nbazaar\n--sessions\n10\n--seeds\n2\n--against\nlser"]
    lines += ["demo\n--sessions\n5\n--seeds\n1\n--out\nd", "policy", "policy\npromote\nlser\n3"]
    lines += ["import\nclicks.csv\nshop\n--items\nitems.csv", "backup\nshop\nbackup"]
    lines += ["evaluate\n--log\nshop\n--policy\nlser-1", "memories\n--json", "agents", "simulators"]
    whole = [line.encode() for line in lines]
    files = list(folder().values())
    reading = [line for line in whole if b"record" in line or b".csv" in line or b".lser" in line]
    return whole + [
        line + b"\0" + bytes([number]) + files[number]
        for number, line in enumerate(reading * 2)
        if number < len(files)
    ]
