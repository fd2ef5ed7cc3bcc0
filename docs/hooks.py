"""What mkdocs.yml leaves to code: folders in the navigation, fields of classes, the results,
formulas."""

import ast
import html
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]
FIGURES = "assets/results"  # where the site has the figures of the results


def on_config(config: Any) -> Any:
    """Put pages in the place of folders, so that a new page needs no line in mkdocs.yml."""
    root = Path(config.docs_dir)
    nav = [{title: _pages(place, root) for title, place in item.items()} for item in config.nav]
    config.nav = [item for item in nav if all(item.values())]
    return config


def _pages(place: Any, root: Path) -> Any:
    """`place` with its folders expanded; a folder leaves out the pages named beside it."""
    if isinstance(place, str) and place.endswith("/"):
        return _pages([place], root)
    if not isinstance(place, list):
        return place
    pages: list[Any] = []
    for entry in place:
        if isinstance(entry, dict):
            pages.append({title: _pages(inside, root) for title, inside in entry.items()})
            continue
        folder = isinstance(entry, str) and entry.endswith("/")
        found = _listed(root, entry) if folder else [entry]
        pages += [page for page in found if page not in pages]
    return pages


def _listed(root: Path, folder: str) -> list[str]:
    pages = sorted((root / folder).glob("*.md"), key=lambda page: (page.stem != "index", page.stem))
    return [page.relative_to(root).as_posix() for page in pages]


def on_files(files: Any, config: Any) -> Any:
    """Add the figures that the results show."""
    for figure in sorted((ROOT / "results" / "figures").glob("*.svg")):
        files.append(File.generated(config, f"{FIGURES}/{figure.name}", content=figure.read_text()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:  # noqa: ARG001
    """Fill in what pages only name.

    ``@fields module.Class`` becomes the fields of a class and their comments, ``@block name`` a
    block of the results.
    """
    up = "../" * page.file.src_uri.count("/")
    markdown = re.sub(r"^@block (\w+)$", lambda found: _block(found[1], up), markdown, flags=re.M)
    return re.sub(r"^@fields ([\w.]+)$", lambda found: _fields(found[1]), markdown, flags=re.M)


FORMULA = re.compile(
    r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</(?:span|div)>', re.DOTALL
)


SIGN = re.compile(r"<td>([^<]*?) ([▲▼△▽])</td>")
SIDES = {"▲": "above", "▼": "below", "△": "above only-before-holm", "▽": "below only-before-holm"}


def on_page_content(content: str, page: Any, config: Any, files: Any) -> str:  # noqa: ARG001
    """Turn formulas into MathML, which browsers draw without a script or the network, and colour
    the cells of tables that carry a verdict."""

    def drawn(found: re.Match[str]) -> str:
        display = "block" if found[1] == "div" else "inline"
        shown = convert(html.unescape(found[2]), display=display)
        return f'<{found[1]} class="formula">{shown}</{found[1]}>'

    def coloured(found: re.Match[str]) -> str:
        return f'<td class="{SIDES[found[2]]}">{found[1]}\u00a0{found[2]}</td>'

    return SIGN.sub(coloured, FORMULA.sub(drawn, content))


def _block(name: str, up: str) -> str:
    """What stands between the markers of ``name`` in the results, or on the front page.

    `up` leads from the page that shows it to the site's root.
    """
    text = (ROOT / "results" / "README.md").read_text()
    if name == "results":
        text = (ROOT / "README.md").read_text().replace("](results/README.md)", "](results.md)")
        text = text.replace("](results/figures/", "](figures/")
    inside = text.partition(f"<!-- {name}:begin -->\n")[2].partition(f"<!-- {name}:end -->")[0]
    if not inside:
        raise ValueError(f"results/README.md has no block {name!r}")
    inside = inside.replace("](figures/", f"]({up}{FIGURES}/").strip()
    # the site has neither the plan nor what else stands on the page that has the block
    return re.sub(r"\[([^\]]+)\]\((?:plan\.md)?(?:#[\w-]+)?\)", r"\1", inside)


def _fields(path: str) -> str:
    module, _, name = path.rpartition(".")
    text = (ROOT / "src" / f"{module.replace('.', '/')}.py").read_text()
    (body,) = (
        node.body
        for node in ast.parse(text).body
        if isinstance(node, ast.ClassDef) and node.name == name
    )
    lines, shown = text.splitlines(), []
    for node, following in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign):
            shown += [f"# {line.strip()}" for line in _words(following).splitlines()]
            shown += [
                line.removeprefix("    ") for line in lines[node.lineno - 1 : node.end_lineno]
            ]
    return "\n".join(["```python", *shown, "```"])


def _words(node: ast.stmt | None) -> str:
    """The text of a string that stands by itself, as under a documented field."""
    match node:
        case ast.Expr(ast.Constant(str() as text)):
            return text
    return ""
