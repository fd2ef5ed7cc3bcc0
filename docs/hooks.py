"""The navigation: an entry that ends in / stands for the pages of that folder, index first."""

from pathlib import Path
from typing import Any


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
        folder = isinstance(entry, str) and entry.endswith("/")
        found = _listed(root, entry) if folder else [entry]
        pages += [page for page in found if page not in pages]
    return pages


def _listed(root: Path, folder: str) -> list[str]:
    pages = sorted((root / folder).glob("*.md"), key=lambda page: (page.stem != "index", page.stem))
    return [page.relative_to(root).as_posix() for page in pages]
