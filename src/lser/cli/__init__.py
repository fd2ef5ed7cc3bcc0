"""The command line: ``lser COMMAND``. Each command is a module that is loaded when it is called."""

import difflib
import importlib
import io
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout

# command -> module under lser.cli and one line for the overview
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("demo", "LSER's recommender beside linear bandits, and a page about it"),
    "compare": ("compare", "train memories or agents side by side and say which is better"),
    "train": ("train", "run one experiment and keep its record"),
    "resume": ("resume", "continue an interrupted run"),
    "evaluate": ("evaluate", "score the agent of a finished run on fresh users"),
    "runs": ("runs", "list records"),
    "watch": ("watch", "follow a running record in the terminal"),
    "check": ("check", "say which files and records are whole"),
    "study": ("study", "run a whole study: every figure and table of the paper"),
    "report": ("report", "draw records as a page with figures and tables"),
    "simulators": ("listing", "list the simulators with their random and best known scores"),
    "memories": ("listing", "list the memories and what they need"),
    "agents": ("listing", "list the agents, from the click model to random actions"),
    "inspect": ("inspect", "say whether replaying by similarity would pay on your log"),
    "serve": ("serve", "serve recommendations over HTTP and learn from the clicks"),
    "learn": ("learn", "learn for a shop that several servers share"),
    "policy": ("policy", "promote or roll back a policy of a running service"),
    "import": ("import_", "bring the clicks of the past into a shop's log"),
    "backup": ("backup", "copy a shop while it is served"),
    "theory": ("theory", "what to expect of a hash: collisions, recall, occupied codes"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    _speak_in_any_locale()
    try:
        try:
            return _answer(list(sys.argv[1:] if argv is None else argv))
        finally:  # also on the way out of a --help
            sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as head, has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _speak_in_any_locale() -> None:
    """Write what a terminal's encoding lacks, or a name that is no text, in escapes: no error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def _answer(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_overview())
        return 0
    if arguments[0] == "--version":
        from lser import __version__

        print(__version__)
        return 0
    from lser.simulators.virtual_taobao.weights import WeightsError

    name, rest = arguments[0], arguments[1:]
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=2) or list(COMMANDS)
        return _error(f"unknown command {name!r}; did you mean {' or '.join(near)}?")
    module = importlib.import_module(f"lser.cli.{COMMANDS[name][0]}")
    command = getattr(module, COMMANDS[name][0] if name == "import" else name)
    try:
        with _narrow_help() if {"-h", "--help"} & set(rest) else nullcontext():
            code: int = command(rest)
    except BrokenPipeError:  # an OSError, and no mistake of the user's
        raise
    except (ValueError, MemoryError, OSError, WeightsError) as error:
        return _error(str(error))
    except KeyboardInterrupt:
        return 130
    return code


@contextmanager
def _narrow_help() -> Iterator[None]:
    """Print what is printed inside with lines no longer than the terminal's."""
    text = io.StringIO()
    try:
        with redirect_stdout(text):
            yield
    finally:
        width = shutil.get_terminal_size().columns
        for line in text.getvalue().splitlines():
            indent = " " * 7 if line.startswith("usage:") else ""
            fits = len(line) <= width
            print(line if fits else _filled(line, width, indent))


def _filled(line: str, width: int, indent: str) -> str:
    return textwrap.fill(
        line, width, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {line}" for name, (_, line) in COMMANDS.items()]
    return "\n".join(
        [
            "Experience replay for online recommendation.",
            "",
            "usage: lser COMMAND [OPTIONS]      lser COMMAND --help",
            "",
            *lines,
            "",
            "example: lser compare lser-steady uniform --cure --sessions 1000 --seeds 5",
        ]
    )


def _error(message: str) -> int:
    from lser.cli.words import plain

    text = plain(f"lser: error: {message}")
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        text = "\n".join(_filled(line, width, "") for line in text.splitlines())
    print(text, file=sys.stderr)
    return 2
