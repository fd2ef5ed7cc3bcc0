"""The page of results behind its first screen: every study folded under a line that says what came.

A line has the title of a study's words and their verdict, both of which its words have in bold;
what is behind it are the words, the tables and how the runs were made.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import cure_options
import delayed
import generous
import interest
import interest_watch
import lead
import locality_page
import offers
import paper_regime
import recommender
import regime_bounded
import regime_options
import regions
import regions_cured
import regions_large
import taobao_tuning
import tuned_alike
import words
from committed import findings, panel_of
from sections import section

LONGEST = 160  # of a verdict
IN_FULL = {"not separated": "LSER and uniform are not separated", "is open": "open"}


class Part(NamedTuple):
    """A study: its words, with tables behind them or not."""

    said: str
    script: str = ""
    """What prints every figure."""
    block: str = ""
    """The name by which a page of the site shows the words."""
    tables: str = ""
    """What such a page leaves out."""


def page() -> str:
    """Every group of studies; what was not run leaves nothing."""
    parts = []
    for title, told in groups().items():
        if folds := [fold(part) for part in told if part.said]:
            parts += [f"### {title}", *folds]
    return "\n\n".join(parts)


def groups() -> dict[str, Sequence[Part]]:
    """The studies by what they are about."""
    taobao = panel_of("comparison", "virtual-taobao", "15,000 sessions")
    longest = panel_of("comparison", "virtual-taobao", "90,000 sessions")
    epsilon = panel_of("epsilon", "virtual-taobao")
    return {
        "VirtualTaobao, as printed": (
            *_plain(words.headline(taobao, findings()), words.steadiness(taobao)),
            *_sections("c"),
            *_plain(words.carried(taobao, findings()), words.lasting(longest, epsilon)),
            *_sections("s", "z", "z_others", "ab"),
        ),
        "VirtualTaobao, with the cure": _sections("k", "t", "y", "ac"),
        "Every memory tuned alike": (
            Part(tuned_alike.block(), "tuned_alike"),
            Part(taobao_tuning.block(), "taobao_tuning"),
            Part(taobao_tuning.cure_block(), "taobao_tuning"),
        ),
        "Where locality pays, on Bazaar": (
            Part(locality_page.block(), "locality", "locality", locality_page.tables()),
            Part(regions.block(), "regions"),
            Part(regions_cured.block(), "regions_cured"),
            Part(regions_large.block(), "regions_large"),
        ),
        "Why runs fall, and what else could hold them": (
            *_sections("aa", "bb", "b"),
            Part(paper_regime.block(), "paper_regime"),
            Part(regime_bounded.reading(), "regime_bounded"),
            Part(regime_options.reading(), "regime_options"),
            Part(cure_options.reading(), "cure_options"),
        ),
        "RecSim and RecoGym": (
            *_plain(
                words.interest(panel_of("comparison", "interest-evolution")),
                words.recogym(panel_of("comparison", "recogym")),
                words.satisfaction(panel_of("comparison", "long-term-satisfaction")),
            ),
            Part(delayed.block(), "delayed", "delayed"),
            Part(interest.block(), "interest"),
            Part(interest_watch.block(), "interest_watch"),
            Part(offers.block(), "offers"),
        ),
        "The recommender beside bandits": (
            Part(recommender.reading(), "recommender"),
            Part(lead.block(), "lead", "lead"),
            Part(generous.block(), "generous"),
        ),
        "LSER's parts": (
            *_sections("h"),
            *_plain(
                words.store(panel_of),
                words.bits(panel_of("hyperplanes", "virtual-taobao")),
                words.horizon(panel_of),
            ),
        ),
        "How sure this is": (*_plain(words.seeds(taobao)), *_sections("j")),
    }


def _plain(*said: str) -> Iterable[Part]:
    return map(Part, said)


def _sections(*letters: str) -> list[Part]:
    return [Part(section(letter)) for letter in letters]


def fold(part: Part) -> str:
    """A study behind its line."""
    said, source = part.said, ""
    if part.block:
        said = f"<!-- {part.block}:begin -->\n{said}\n<!-- {part.block}:end -->"
    if part.script:
        source = f"`python results/{part.script}.py` prints every figure here."
    head = f'<details markdown="1"><summary>{summary(part.said)}</summary>'
    return "\n\n".join(filter(None, (head, said, part.tables, source, "</details>")))


def summary(said: str) -> str:
    """The title of a study's words, and their verdict if they have one."""
    first, _, rest = said.partition("\n\n")[0].removeprefix("**").partition("**")
    found = _verdict(rest)
    return _html(f"<b>{first.rstrip('.')}</b>{': ' if found else ''}{found}")


def _verdict(said: str) -> str:
    """What is bold behind the title; where that is behind a label in italics, with these."""
    labelled = re.findall(r"(?<!\*)\*([^*]+)\*(?!\*)[^*]*\*\*([^*]+)\*\*", said)
    if labelled:
        return "; ".join(f"{label[0].lower()}{label[1:]} {verdict}" for label, verdict in labelled)
    bold = re.search(r"\*\*([^*]+)\*\*(: [^.:;,(\[\d]+(?=[.:;]))?", said)
    if bold is None or len(bold[1]) > LONGEST:
        return ""
    verdict = bold[1].rstrip(".")
    return IN_FULL.get(verdict, verdict) + (bold[2] or "")


def _html(text: str) -> str:
    """Code in a line that is not read as Markdown."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
