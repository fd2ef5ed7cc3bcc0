"""Imports point one way, from the command line down to the types."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "lser"
BOTTOM = {"replay", "agents", "simulators"}
ALLOWED = {
    "types": set(),
    "compiled": set(),
    "params": set(),
    "random": {"types", "compiled"},
    "files": {"compiled"},
    "theory": {"types"},
    "replay": {"types", "compiled", "random", "params", "files"},
    "agents": {"types", "compiled", "random", "params", "files"},
    "simulators": {"types", "compiled", "random", "params"},
    "training": {"types", "files"} | BOTTOM,
    "experiments": {"types", "files", "training"} | BOTTOM,
    "fleet": {"types", "training", "experiments"} | BOTTOM,
    "report": {"types", "experiments"},
    "adapters": {"types", "replay"},
    "online": {"types", "compiled", "random", "training"} | BOTTOM,
    "cli": {"types", "theory", "training", "experiments", "fleet", "report", "adapters", "online"}
    | BOTTOM,
}
OUTSIDE_FORBIDDEN = {
    "replay": {"torch", "gymnasium"},
    "report": {"torch", "gymnasium", "numba"},
    "simulators": {"torch"},
}


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
    files = [p for p in sorted(SOURCE.rglob("*.py")) if p.name not in ("__main__.py",)]
    return [p for p in files if p != SOURCE / "__init__.py"]


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_down_the_layers(path):
    layer = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    assert layer in ALLOWED, f"{layer} has no place in the layers"
    assert violations(layer, path.read_text()) == WEIGHTS_EXCEPTION.get(path.name, [])


# reading the released weights takes torch, loaded only then
WEIGHTS_EXCEPTION = {"weights.py": ["torch"]}


def test_an_import_against_the_direction_is_found():
    assert violations("replay", "from lser.training import train") == ["lser.training"]
    assert violations("replay", "def f():\n    import torch") == ["torch"]
    assert violations("agents", "from lser import replay") == ["lser.replay"]
