"""A command in a real pseudo-terminal of 80 columns, and what a person sees there at its end."""

import fcntl
import os
import pty
import re
import signal
import struct
import sys
import termios
import time
from typing import NamedTuple

LONGEST = 600  # seconds of a command; no claim about speed: it only ends what hangs
ESCAPE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])")


class Seen(NamedTuple):
    code: int
    lines: list[str]


def seen(*arguments, columns=80, rows=50, interrupt_at=None):
    """Runs ``lser ARGUMENTS`` in a terminal; the screen's lines once it has ended.

    Ctrl-C is pressed once the text `interrupt_at` has been written.
    """
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        os.environ.pop("COLUMNS", None)
        os.execv(sys.executable, [sys.executable, "-m", "lser", *arguments])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    written, started = b"", time.monotonic()
    while True:
        if time.monotonic() - started > LONGEST:
            os.kill(pid, signal.SIGKILL)
        try:
            part = os.read(terminal, 65536)
        except OSError:  # Linux: the other side is closed
            break
        if not part:
            break
        written += part
        if interrupt_at is not None and interrupt_at.encode() in written:
            os.write(terminal, b"\x03")
            interrupt_at = None
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    assert time.monotonic() - started <= LONGEST, f"not done within {LONGEST} s: {written!r}"
    return Seen(os.waitstatus_to_exitcode(status), screen(written.decode()))


def screen(text):
    """The lines that stand there in the end: returns, moves up and erasures carried out."""
    lines, row, column = [""], 0, 0
    position = 0
    while position < len(text):
        escape = ESCAPE.match(text, position)
        if escape:
            position = escape.end()
            amount, kind = int(escape[1]) if escape[1].isdigit() else 1, escape[2]
            if kind == "A":
                row = max(0, row - amount)
            elif kind == "K":
                lines[row] = "" if escape[1] == "2" else lines[row][:column]
            continue
        character = text[position]
        position += 1
        if character == "\n":
            row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
        elif character == "\r":
            column = 0
        else:
            lines[row] = lines[row][:column].ljust(column) + character + lines[row][column + 1 :]
            column += 1
    return [line.rstrip() for line in lines]
