"""The navigation: an entry that ends in / stands for the pages of that folder, index first."""

from pathlib import Path
from typing import Any


def on_config(config: Any) -> Any:
    """Put pages in the place of folders, so that a new page needs no line in mkdocs.yml."""
    root = Path(config.docs_dir)
    config.nav = [part for item in config.nav for part in _expanded(item, root)]
    return config


def _expanded(item: dict[str, Any], root: Path) -> list[dict[str, Any]]:
    ((title, place),) = item.items()
    if not (isinstance(place, str) and place.endswith("/")):
        return [item]
    pages = sorted((root / place).glob("*.md"), key=lambda page: (page.stem != "index", page.stem))
    names: list[Any] = [page.relative_to(root).as_posix() for page in pages]
    return [{title: names}] if names else []
