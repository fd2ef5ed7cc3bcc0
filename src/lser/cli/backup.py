"""``lser backup``: copy a shop while it is served."""

from pathlib import Path
from typing import Annotated

import tyro


def backup(argv: list[str]) -> int:
    """Copy a shop."""
    return int(tyro.cli(_backup, args=argv, prog="lser backup"))


def _backup(
    shop: Annotated[str, tyro.conf.Positional], to: Annotated[Path, tyro.conf.Positional], /
) -> int:
    """Copy a shop's log, policies and snapshots to a new folder, while it is served.

    The copy is a shop of its own: lser serve opens it.

    example: lser backup shop backups/monday

    Args:
        shop: Folder of the shop; a database has tools of its own (pg_dump).
        to: Folder to make; it must not be there yet.
    """
    from lser.online.backup import copy_shop
    from lser.online.store import is_database

    if is_database(shop):
        raise ValueError("lser backup copies folders; for a database use pg_dump")
    head = copy_shop(Path(shop), to)
    print(f"{to}: {head:,} events")
    return 0
