"""Imports point one way, from the command line down to the types, and never in a circle."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "lser"
ROOT = {"types", "compiled", "catalogue", "checks", "random", "moments", "params", "files"}
ROOT |= {"locks", "opening", "top_k"}
MIDDLE = {"replay", "agents", "simulators"}
ALLOWED = {
    # modules at the root, each with those below it
    "types": set(),
    "compiled": set(),
    "catalogue": set(),
    "checks": {"types"},
    "locks": set(),
    "opening": set(),
    "files": {"compiled", "locks", "opening"},
    "params": {"catalogue", "checks"},
    "random": {"compiled", "types"},
    "moments": {"compiled", "types", "checks"},
    "top_k": {"compiled", "types"},
    "theory": {"types", "checks"},
    # rooms: three that never import each other, and those above them
    "replay": ROOT,
    "agents": ROOT,
    "simulators": ROOT,
    "training": ROOT | MIDDLE,
    "experiments": ROOT | MIDDLE | {"training"},
    "fleet": ROOT | MIDDLE | {"training", "experiments"},
    "ray": ROOT | MIDDLE | {"training", "experiments", "fleet"},
    "online": ROOT | MIDDLE | {"training", "experiments"},
    "report": {"types", "catalogue", "experiments"},
    "comparison": ROOT | MIDDLE | {"training", "experiments", "report"},
    "adapters": {"types", "catalogue", "checks", "replay"},
    "testing": ROOT | {"replay"},
    "cli": ROOT
    | MIDDLE
    | {
        "theory",
        "training",
        "experiments",
        "fleet",
        "ray",
        "online",
        "report",
        "adapters",
        "comparison",
    },
}
OUTSIDE_FORBIDDEN = {
    "catalogue": {"numpy", "numba", "torch", "gymnasium"},
    "replay": {"torch", "gymnasium"},
    "testing": {"torch", "gymnasium", "pytest"},
    "report": {"torch", "gymnasium", "numba"},
    "simulators": {"torch"},
}
# reading the released weights takes torch, loaded only then
READS_WEIGHTS = {"weights.py": ["torch"]}


def imports(tree: ast.AST) -> list[str]:
    """Every module that is imported, wherever the import stands."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the direction"
            found.append(node.module or "")
            if node.module == "lser":
                found += [f"lser.{alias.name}" for alias in node.names]
    return found


def violations(layer: str, source: str) -> list[str]:
    wrong = []
    for name in imports(ast.parse(source)):
        top, _, rest = name.partition(".")
        part = rest.split(".")[0]
        if top == "lser" and part in ALLOWED and part != layer and part not in ALLOWED[layer]:
            wrong.append(name)
        if top in OUTSIDE_FORBIDDEN.get(layer, set()):
            wrong.append(name)
    return wrong


def modules() -> list[Path]:
    """All of them, but for the two that only pass on what others have."""
    passing_on = (SOURCE / "__init__.py", SOURCE / "__main__.py")
    return [path for path in sorted(SOURCE.rglob("*.py")) if path not in passing_on]


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_down_the_layers(path):
    layer = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    assert layer in ALLOWED, f"{layer} has no place in the layers"
    assert violations(layer, path.read_text()) == READS_WEIGHTS.get(path.name, [])


def test_an_import_against_the_direction_is_found():
    assert violations("replay", "from lser.training import train") == ["lser.training"]
    assert violations("replay", "def f():\n    import torch") == ["torch"]
    assert violations("agents", "from lser import replay") == ["lser.replay"]


def test_no_layer_is_above_itself():
    assert circle(ALLOWED) == []


def graph() -> dict[str, set[str]]:
    """Which module loads which when it is loaded."""
    named = {}
    for path in modules():
        parts = ["lser", *path.relative_to(SOURCE).with_suffix("").parts]
        named[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    edges = {}
    for name, path in named.items():
        edges[name] = set()
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Import):
                edges[name] |= {alias.name for alias in node.names if alias.name in named}
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    module = f"{node.module}.{alias.name}"
                    edges[name].add(module if module in named else str(node.module))
        edges[name] &= set(named)
    return edges


def circle(edges: dict[str, set[str]]) -> list[str]:
    """The names on one circle of imports, or none."""
    done: set[str] = set()

    def walk(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return []
        for other in sorted(edges[name]):
            if found := walk(other, [*path, name]):
                return found
        done.add(name)
        return []

    return next((found for name in sorted(edges) if (found := walk(name, []))), [])


def test_imports_never_go_in_a_circle():
    assert circle(graph()) == []


def test_a_circle_is_found():
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/extending.md"])
def test_the_documented_layers_are_all_there_are(page):
    text = (SOURCE.parents[1] / page).read_text()
    layers = re.search(r"^cli -> [^`]+", text, re.MULTILINE)
    assert layers is not None
    assert set(re.findall(r"[a-z_]+", layers[0].split("\n\n")[0])) == set(ALLOWED)


def test_every_dependency_has_its_reason():
    project = tomllib.loads((SOURCE.parents[1] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(n for e in extras for n in extras[e] if e != "dev")]
    text = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text()
    names = {re.match(r"[A-Za-z0-9-]+", requirement)[0] for requirement in wanted} - {"lser"}
    assert {name for name in names if name not in text} == set()
