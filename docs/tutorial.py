"""Runs the tutorial from top to bottom and writes what each block printed under it."""

import contextlib
import io
import os
import re
import tempfile
from pathlib import Path

PAGE = Path(__file__).resolve().with_suffix(".md")
BLOCK = re.compile(r"```python\n(.*?)```\n(?:\n```text\n.*?```\n)?", re.DOTALL)


def filled(text: str) -> str:
    """The page with the output of every block under it; blocks share their names."""
    names: dict[str, object] = {"__name__": "tutorial"}

    def run(found: re.Match[str]) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(found[1], PAGE, "exec"), names)
        output = printed.getvalue().rstrip()
        shown = f"\n```text\n{output}\n```\n" if output else ""
        return f"```python\n{found[1]}```\n{shown}"

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        return BLOCK.sub(run, text)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    PAGE.write_text(filled(PAGE.read_text()))
