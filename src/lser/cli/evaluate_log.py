"""``lser evaluate --log``: what a shop's log says about its policies."""

import json
from dataclasses import asdict
from typing import Annotated

import tyro

from lser.cli.words import plain


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
        print(json.dumps({name: asdict(result) for name, result in found.items()}))
        return 0
    print(
        f"{'policy':<18}{'pages':>8}{'effective':>11}{'logged':>9}{'IPS':>17}{'SNIPS':>17}{'DR':>17}"
    )
    for name, result in found.items():
        cells = [
            f"{e.value:.4f} ± {e.error:.4f}" if e else "refused"
            for e in (result.ips, result.snips, result.doubly_robust)
        ]
        numbers = f"{result.pages:>8,}{result.effective:>11,.0f}{result.logged:>9.4f}"
        print(f"{plain(name):<18}{numbers}{''.join(f'{cell:>17}' for cell in cells)}")
    return 0
