"""Every memory of the catalogue, and more variants, keep the contract of `lser.testing`."""

import pytest

from lser.catalogue import MEMORIES
from lser.replay import E2LSH, LocalityReplay, SimHash
from lser.testing import CHECKS, NotForThis, Subject, subject
from lser.testing.contract import chooses_alike_without_rows
from lser.testing.subject import OBSERVATION

ZONES = {
    "fills_up": "zones are for copies of successful sessions: ordinary traffic fills the rings",
    "holds_a_single_transition": "every shard has a ring and a zone",
    "takes_a_block_as_its_rows": "a block goes to one shard",
}
DRAWN_BY_BLOCK = {"takes_a_block_as_its_rows": "random numbers are drawn for a block at a time"}
RETURNS = {"takes_a_block_as_its_rows": "returns are known when the whole block is in"}
EXCEPTIONS = {
    "der": ZONES,
    "der-uniform": ZONES,
    "random-code": DRAWN_BY_BLOCK,
    "ser-coverage": DRAWN_BY_BLOCK,
    "ser-reward": RETURNS,
    "lser-return": RETURNS,
}
VARIANTS = {
    "aer-raw": ("aer", "query", {"features": "raw"}),
    "ser-surprise": ("ser", "td_errors", {"strategy": "surprise"}),
    "ser-reward": ("ser", "sessions", {"strategy": "reward"}),
    "ser-coverage": ("ser", "", {"strategy": "coverage", "probes": 4}),
    "lser-return": ("lser", "query sessions", {"order": "return"}),
    "lser-evict": ("lser", "query", {"bits": 8, "unseen": "evict"}),
    "lser-standardised": ("lser", "query", {"features": "standardised", "warmup": 30}),
    "lser-item": ("lser", "query", {"greedy": 0.5, "greedy_per": "item", "fill": "uniform"}),
}
ENCODERS = {
    "lser-e2lsh": lambda: E2LSH(OBSERVATION, functions=2, seed=1),
    "lser-simhash": lambda: SimHash(OBSERVATION, bits=3, seed=9),
}
# With storage="none" a rule has no rows to look at.
LOOK_AT_ROWS = {"aer", "aer-raw", "der", "der-uniform", "her", "ser-coverage"}


def with_encoder(make):
    """A LSER with an encoder of its own, each time a new one."""
    return lambda *sizes, **knobs: LocalityReplay(*sizes, encoder=make(), **knobs)


def subjects():
    found = {name: subject(name, exceptions=EXCEPTIONS.get(name)) for name in MEMORIES.own}
    for name, (base, needs, knobs) in VARIANTS.items():
        said = frozenset(needs.split())
        found[name] = subject(base, needs=said, exceptions=EXCEPTIONS.get(name), **knobs)
    return found


SUBJECTS = subjects()


@pytest.mark.parametrize("name", SUBJECTS)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_it_keeps_the_contract(name, check):
    tested = SUBJECTS[name]
    if check.__name__ in tested.exceptions:
        pytest.skip(tested.exceptions[check.__name__])
    if check is chooses_alike_without_rows and name in LOOK_AT_ROWS:
        with pytest.raises(NotForThis, match="storage='none'"):
            check(tested)
    else:
        check(tested)


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize(
    "check",
    [c for c in CHECKS if c.__name__ in ("follows_its_seed", "replays_what_it_holds")],
    ids=lambda check: check.__name__,
)
def test_encoders_are_handed_over_as_they_are(name, check):
    check(Subject(name, with_encoder(ENCODERS[name]), {}, frozenset({"query"})))
