"""Every command line that a page shows is one that the command takes."""

import re
import shlex
from pathlib import Path

import pytest
from drill.commands import nothing_long

from lser.cli import main

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "results" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
WAITING = ("serve", "learn", "watch", "policy")  # they are given --help: their options are read
# what is wrong with the example's own files, which are not here; anything else is a wrong command
ABSENT = r"no module|does not exist|is no record|[Nn]o such|holds no|is a file|no finished|no CUDA"


def command_lines():
    for page in PAGES:
        for block in re.findall(r"```bash\n(.*?)```", page.read_text(), re.DOTALL):
            for line in block.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                if words[:1] == ["lser"] and not {"|", "&", "&&", ">", "..."} & set(words):
                    yield pytest.param(words[1:], id=f"{page.stem}: {' '.join(words[1:])}"[:90])


@pytest.mark.parametrize("words", list(command_lines()))
def test_it_is_taken(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LSER_VIRTUAL_TAOBAO", str(ROOT))  # a plan needs no weights
    if words[0] in WAITING:
        words = [*words, "--help"]
    with nothing_long():
        try:
            code = main(words)
        except SystemExit as end:  # of the parser: 0 is help
            code = end.code
    told = capsys.readouterr().err
    assert code == 0 or re.search(ABSENT, told), told


def test_there_are_many():
    assert len(list(command_lines())) > 30
