"""``lser evaluate --log``: what a shop's log says about its policies."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import tyro

from lser.cli.json_text import json_text
from lser.cli.words import plain

if TYPE_CHECKING:  # its imports take a second
    from lser.online.estimates import Evaluation


def evaluate_log(argv: list[str]) -> int:
    """Estimate policies from a log."""
    return int(tyro.cli(_evaluate_log, args=argv, prog="lser evaluate"))


def _evaluate_log(
    log: str,
    policy: tyro.conf.UseAppendAction[tuple[str, ...]] = (),
    pages: int = 20_000,
    floor: float = 100.0,
    json_output: Annotated[bool, tyro.conf.arg(name="json")] = False,
) -> int:
    """Estimate the click rate of policies from the pages that others showed.

    Inverse propensities (IPS), their self-normalised form (SNIPS) and the doubly robust estimate,
    each with its standard error over visitors. Refused where too few pages carry weight: arms
    that run side by side are the better evidence.

    example: lser evaluate --log shop --policy lser-12

    Args:
        log: Folder of the shop, or the address of its database.
        policy: ARM-VERSION; may be repeated. Default: the newest of every arm.
        pages: Newest pages to use.
        floor: Effective sample size below which nothing is said.
        json_output: Print JSON.
    """
    from lser.online.estimates import current_policies, evaluate
    from lser.online.store import open_store

    store = open_store(log)
    reader = store.reader()
    try:
        found = evaluate(
            reader, current_policies(store, reader, list(policy)), most=pages, floor=floor
        )
    finally:
        reader.close()
        store.close()
    if json_output:
        print(json_text({name: asdict(result) for name, result in found.items()}))
        return 0
    for name, result in found.items():
        print(plain(words(name, result)))
    return 0


def words(name: str, found: "Evaluation") -> str:
    """The estimates for a policy, in two lines within 80 columns."""
    shown = (("IPS", found.ips), ("SNIPS", found.snips), ("DR", found.doubly_robust))
    cells = [f"{k} {e.value:.4f} ± {e.error:.4f}" if e else f"{k} refused" for k, e in shown]
    pages = f"{found.pages:,} pages, {found.effective:,.0f} effective, logged {found.logged:.4f}"
    return f"{name}: {pages}\n  {'   '.join(cells)}"
