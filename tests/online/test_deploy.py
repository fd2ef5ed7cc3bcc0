"""The compose file says what the command line understands."""

import importlib
from pathlib import Path

import pytest

from lser.cli import COMMANDS

yaml = pytest.importorskip("yaml")
DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


def services():
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]


def test_every_option_of_the_compose_file_is_one_of_the_command_s(capsys):
    seen = 0
    for service in services().values():
        command = service.get("command", ["postgres"])
        if command[0] == "postgres":
            continue
        assert command[0] in COMMANDS
        module = importlib.import_module(f"lser.cli.{command[0]}")
        with pytest.raises(SystemExit):
            getattr(module, command[0])(["--help"])
        text = capsys.readouterr().out
        for option in command[1:]:
            assert option.partition("=")[0] in text
            seen += 1
    assert seen > 10


def test_every_server_has_tokens_and_no_password_stands_in_an_address():
    for name, service in services().items():
        if name.startswith("serve"):
            assert set(service["secrets"]) == {"writer", "admin"}
        for part in service.get("command", []):
            assert "postgresql://lser:" not in part
    assert all(f"serve-{n}:8080" in (DEPLOY / "door.conf").read_text() for n in (1, 2))
