"""``lser import``: the clicks of the past into a shop's log."""

import sys
from pathlib import Path
from typing import Annotated

import tyro

from lser.checks import check_count, check_number


def import_(argv: list[str]) -> int:
    """Import a table of clicks."""
    return int(tyro.cli(_import, args=argv, prog="lser import"))


def _import(
    clicks: Annotated[Path, tyro.conf.Positional],
    shop: Annotated[str, tyro.conf.Positional],
    /,
    items: Path | None = None,
    features: int = 0,
    gap: float = 1.0,
    fill: int = 0,
) -> int:
    """Bring the clicks of the past into a shop's log, before it is served.

    The table has columns user, item, time and, where known, clicked (0 or 1) and page. The
    learner sees these pages first; the same table again changes nothing. With clicks alone
    (no column clicked), --fill adds random items that were not clicked.

    example: lser import clicks.parquet shop --items items.csv

    Args:
        clicks: CSV or Parquet.
        shop: Folder of the shop, which must not be served at the moment, or the address of its
            database.
        items: The items, for a shop that is not there yet.
        features: Numbers about the visitor that requests will give, for a new shop.
        gap: Seconds between rows of a user that are still one page, where no column says it.
        fill: Random items added to every page as not clicked.
    """
    from lser.online.past import bring_in, read_past
    from lser.online.recommender import Recommender

    check_number("--gap", gap, low=0.0)
    check_count("--fill", fill, low=0)
    check_count("--features", features, low=0)
    pages = read_past(clicks, gap=gap)
    with Recommender(items, shop, features=features, learner="off") as recommender:
        taken = bring_in(recommender, pages, fill=fill)
    print(f"{len(pages):,} pages read, {taken:,} new", file=sys.stderr)
    return 0
