"""What the files of deploy/ say is true of the command line, the package and one another."""

import importlib
import ipaddress
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from drill.postgres import free_port
from drill.service import running

from lser.cli import COMMANDS

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
NGINX = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")


def compose():
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def services():
    return compose()["services"]


def instructions(name):
    """The arguments of every such line of the Dockerfile."""
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    return [shlex.split(line)[1:] for line in lines if line.startswith(f"{name} ")]


def commands():
    """Every command line of lser in the compose file and the Dockerfile."""
    for service in services().values():
        if service.get("image") == "lser":
            yield service["command"]
    for words in instructions("RUN"):
        if words[0] == "lser":
            yield words[1:]


def test_every_option_is_one_of_the_command_s(capsys):
    seen = 0
    for command in commands():
        assert command[0] in COMMANDS
        module = importlib.import_module(f"lser.cli.{command[0]}")
        with pytest.raises(SystemExit):
            getattr(module, command[0])(["--help"])
        text = capsys.readouterr().out
        for option in command[1:]:
            assert option.partition("=")[0] in text
            seen += 1
    assert seen > 15


def test_every_server_has_tokens_and_no_password_stands_in_an_address():
    for name, service in services().items():
        if name.startswith("serve"):
            assert set(service["secrets"]) == {"writer", "admin"}
        for part in service.get("command", []):
            assert "postgresql://lser:" not in part


def test_secrets_are_not_committed():
    ignored = (ROOT / ".gitignore").read_text().split()
    files = [secret["file"] for secret in compose()["secrets"].values()]
    assert files
    assert all(path.startswith("./secrets/") for path in files)
    assert {"/deploy/secrets/", "/deploy/.env", "/deploy/items.csv"} <= set(ignored)


def test_the_image_is_given_all_that_its_package_is_built_from():
    copied = [word for words in instructions("COPY") for word in words[:-1]]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = ["pyproject.toml", "constraints.txt", project["project"]["readme"]]
    needed += project["project"]["license-files"]
    needed += project["tool"]["setuptools"]["packages"]["find"]["where"]
    assert set(needed) <= set(copied)
    assert all((ROOT / path).exists() for path in copied)
    [install] = [words for words in instructions("RUN") if words[0] == "pip"]
    extras = re.fullmatch(r"\.\[(.*)\]", install[-1])[1].split(",")
    assert set(extras) <= set(project["project"]["optional-dependencies"])


def test_the_door_knows_the_servers_by_addresses_that_stay():
    parts, [network] = services(), compose()["networks"]["default"]["ipam"]["config"]
    subnet, changing = (ipaddress.ip_network(network[name]) for name in ("subnet", "ip_range"))
    fixed = {
        name: service["networks"]["default"]["ipv4_address"]
        for name, service in parts.items()
        if name.startswith("serve")
    }
    assert len(set(fixed.values())) == len(fixed) == 2
    for address in map(ipaddress.ip_address, fixed.values()):
        assert address in subnet
        assert address not in changing  # where the engine finds addresses for the others
    assert dict(words.split(":") for words in parts["door"]["extra_hosts"]) == fixed
    asked = re.findall(r"server (\S+):8080", (DEPLOY / "door.conf").read_text())
    assert sorted(asked) == sorted(fixed)


def test_the_health_check_tells_a_service_that_is_ready(tmp_path):
    [words] = {tuple(s["healthcheck"]["test"]) for n, s in services().items() if "serve" in n}
    assert words[:2] == ("CMD", "python")

    def check(port):
        line = words[-1].replace(":8080/", f":{port}/")
        assert line != words[-1]
        command = [sys.executable, *words[2:-1], line]
        return subprocess.run(command, stderr=subprocess.DEVNULL).returncode

    assert check(free_port()) != 0
    with running(tmp_path, learner="off") as (_, port):
        assert check(port) == 0


@pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
def test_nginx_understands_the_door(tmp_path):
    door = re.sub(r"serve-\d:", "127.0.0.1:", (DEPLOY / "door.conf").read_text())
    (tmp_path / "nginx.conf").write_text(
        f"pid {tmp_path}/pid; error_log stderr; events {{}}\n"
        f"http {{ access_log off; {door.replace('listen 8080', f'listen {free_port()}')} }}"
    )
    command = [NGINX, "-t", "-q", "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
