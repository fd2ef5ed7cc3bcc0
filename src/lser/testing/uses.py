"""What a memory makes use of is what it says: the query, TD errors, sessions, goals."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from lser.testing.subject import BATCH, NotForThis, Subject, require
from lser.testing.traffic import Snapshot, blocks_of, life_of, same_batch


def uses_the_query_as_it_says(subject: Subject) -> None:
    """If it needs the query, draws depend on it or ask for it; if not, they ignore it."""
    memory, columns, _, _ = life_of(subject)
    found = _depends_on_query(memory, columns[0])
    _compare(subject, "query", found)


def _depends_on_query(memory: Any, queries: Any) -> bool:
    try:
        plain = copy.deepcopy(memory).sample(BATCH)
    except ValueError as error:
        require("query" in str(error), f"without a query it raises what names none: {error}")
        return True
    return not all(same_batch(plain, copy.deepcopy(memory).sample(BATCH, q)) for q in queries[:10])


def uses_td_errors_as_it_says(subject: Subject) -> None:
    """If it needs TD errors, draws follow them; if not, they change nothing."""
    memory, columns, _, rng = life_of(subject)
    told = copy.deepcopy(memory)
    held = told.sample(4 * BATCH, columns[0][0]).ids
    memory.sample(4 * BATCH, columns[0][0])
    told.update(held, 100.0 * np.arange(len(held)))
    differs = Snapshot(told) != Snapshot(memory)
    drawn = False
    for block in blocks_of(rng, 10, first=len(columns[0])):
        left, right = (each.sample(BATCH, block[0][0]) for each in (memory, told))
        drawn = drawn or not same_batch(left, right)
        for each in (memory, told):
            each.extend(*block)
    require(drawn == differs, "feedback changes its state, but not a draw")
    _compare(subject, "td_errors", drawn)


def uses_sessions_as_it_says(subject: Subject) -> None:
    """If it needs sessions, it matters where they end; if not, it does not."""
    whole, cut = subject.make(), subject.make()
    differs = False
    for block in blocks_of(np.random.default_rng(11), 40):
        *rest, terminated, truncated = block
        never = np.zeros_like(terminated)
        whole.extend(*rest, never, never)
        cut.extend(*rest, terminated, truncated)
        left, right = (each.sample(BATCH, block[0][0]) for each in (whole, cut))
        differs = differs or not np.array_equal(left.action[:, 0], right.action[:, 0])
        differs = differs or not np.array_equal(left.reward, right.reward)
    _compare(subject, "sessions", differs)


def uses_goals_as_it_says(subject: Subject) -> None:
    """If it needs goals, observations must end with one; if not, with any number."""
    memory, _, _, rng = life_of(subject)
    (block,) = blocks_of(rng, 1)
    block[0][:, -1] = 123.0
    try:
        memory.extend(*block)
        found = False
    except ValueError:
        found = True
    _compare(subject, "goals", found)


def _compare(subject: Subject, need: str, found: bool) -> None:
    if subject.needs is None:
        raise NotForThis(f"nobody says what it needs; it {'uses' if found else 'ignores'} {need}")
    said = need in subject.needs
    does = "makes use of" if found else "does not make use of"
    require(found == said, f"it {does} {need}, but says {sorted(subject.needs)}")


CHECKS: tuple[Callable[[Subject], None], ...] = (
    uses_the_query_as_it_says,
    uses_td_errors_as_it_says,
    uses_sessions_as_it_says,
    uses_goals_as_it_says,
)
