"""Which of LSER's options matter: the figures of H in plan.md.

``python results/planned.py FOLDER h`` makes the runs, ``python results/options.py pack FOLDER``
writes ``options.jsonl.gz``; without arguments it prints every figure from there.
"""

import sys
from functools import cache

from committed import RESULTS, by_arm
from delayed import Gap, gap, verdict
from scored import Scored, pack_or_print, row, scored
from standing import chance, with_holm

from lser.report.stats import mean_t
from lser.report.style import interval, listing, name_of, number

FILE = RESULTS / "options.jsonl.gz"
BASE = "lser"


@cache
def runs() -> Scored:
    """The runs by arm."""
    return scored(by_arm(FILE))


def known() -> bool:
    """Whether it has been run."""
    return FILE.is_file()


def gaps() -> dict[str, tuple[Gap, float]]:
    """Every option minus LSER as printed, with Holm's p over all of them."""
    found = runs()
    arms = [arm for arm in found.runs if arm != BASE]
    return with_holm({arm: gap(found.of(arm), found.of(BASE)) for arm in arms})


def reading() -> str:
    """What H says in words; nothing before it has been run."""
    if not known():
        return ""
    found = gaps()
    sides: dict[str, list[str]] = {}
    for arm, (one, p) in found.items():
        sides.setdefault(verdict(one.mean, p), []).append(
            f"`{arm}` {interval(one.mean, sign=True)} ({chance(p)})"
        )
    parts = [
        f"**{words} {listing(sides[side])}**"
        for side, words in (("above", "above it end"), ("below", "below it end"))
        if side in sides
    ]
    level = [arm for arm, (one, p) in found.items() if verdict(one.mean, p) == "not separated"]
    rest = f"not separated from it: {listing([f'`{arm}`' for arm in level])}" if level else ""
    return (
        "**LSER's options, one at a time** (H of the plan; VirtualTaobao, 15,000 sessions, "
        f"{len(runs().of(BASE))} seeds, {runs().whole()}). LSER as printed ends at "
        f"{number(runs().mean(BASE))}. After Holm over the {len(found)}, "
        f"{'; '.join(filter(None, [*parts, rest]))}."
    )


def table() -> str:
    """LSER as printed and every option."""
    lines = [
        "| option | CTR [95 %] | share of the possible | minus lser [95 %] | p after Holm | over "
        "training | worst run | fell | seeds |",
        "|" + "---|" * 9,
    ]
    found, pairs = runs(), gaps()
    for arm in sorted(found.runs, key=lambda name: -found.mean(name)):
        ends = found.of(arm)
        other = ["", ""]
        if arm in pairs:
            one, p = pairs[arm]
            other = [interval(one.mean, sign=True), number(p)]
        lines.append(
            row(
                *(name_of(arm), interval(mean_t(list(ends.values()))), f"{found.share(arm):.2f}"),
                *(*other, f"{found.area(arm):.3f}", f"{min(ends.values()):.3f}"),
                *(str(sum(found.fallen(arm).values())), str(len(ends))),
            )
        )
    return "\n".join(lines)


def block() -> str:
    """The words and the table."""
    return f"{reading()}\n\n{table()}" if known() else ""


if __name__ == "__main__":
    pack_or_print(sys.argv[1:], "options", FILE, block)
