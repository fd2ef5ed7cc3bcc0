"""Bad input is refused with a ValueError that names it, and leaves the memory unchanged."""

from collections.abc import Callable
from typing import Any

import numpy as np

from lser.testing.subject import OBSERVATION, Broken, Subject, refused, require
from lser.testing.traffic import FIELDS, Snapshot, blocks_of, life_of


def refuses_what_is_not_finite(subject: Subject) -> None:
    """NaN and infinity in any field."""
    memory, _, _, rng = life_of(subject, 6)
    before = Snapshot(memory)
    for name, at in zip(FIELDS[:4], range(4), strict=True):
        for value in (np.nan, np.inf, -np.inf):
            (block,) = blocks_of(rng, 1)
            block[at].flat[-1] = value
            with refused(f"{name} = {value}", name):
                memory.extend(*block)
            require(Snapshot(memory) == before, f"refused for its {name}, a block left traces")


def refuses_wrong_shapes(subject: Subject) -> None:
    """Any field that does not fit the others or the memory."""
    memory, _, _, rng = life_of(subject, 6)
    before = Snapshot(memory)
    for at, name in enumerate(FIELDS):
        (block,) = blocks_of(rng, 1)
        wrong: list[Any] = list(block)
        wrong[at] = np.concatenate((block[at], block[at]), axis=-1)
        with refused(f"{name} of shape {wrong[at].shape}", name):
            memory.extend(*wrong)
        require(Snapshot(memory) == before, f"refused for its {name}, a block left traces")


def refuses_bad_sizes(subject: Subject) -> None:
    """Batch sizes and capacities that are no positive integers, and any draw from nothing."""
    memory, columns, _, _ = life_of(subject, 6)
    before = Snapshot(memory)
    for size in (0, -1, 2.5):
        with refused(f"batch_size={size}", "batch_size"):
            memory.sample(size, columns[0][0])
    require(Snapshot(memory) == before, "a refused draw changed the memory")
    for capacity in (0, -3, 1.5):
        with refused(f"capacity={capacity}", "capacity"):
            subject.make(capacity)
    with refused("a draw from an empty memory", "empty"):
        subject.make().sample(1, np.zeros(OBSERVATION))


def refuses_bad_queries(subject: Subject) -> None:
    """A query that is no observation is refused, or not looked at."""
    memory, _, _, _ = life_of(subject, 6)
    for query in (np.zeros(OBSERVATION + 1), np.full(OBSERVATION, np.nan)):
        before = Snapshot(memory)
        try:
            batch = memory.sample(4, query)
        except ValueError as error:
            require("query" in str(error), f"the error about a query does not name it: {error}")
            require(Snapshot(memory) == before, "a refused query changed the memory")
        except Exception as error:
            raise Broken(f"query={query} raises {error!r} in place of a ValueError") from error
        else:
            require(len(batch.ids) == 4, "a query that is not looked at changed the batch's size")


def refuses_bad_feedback(subject: Subject) -> None:
    """Feedback that makes no sense is refused, or not looked at."""
    memory, _, ids, _ = life_of(subject, 3)
    before = Snapshot(memory)
    known = ids[0][ids[0] >= 0][0]
    for names, errors in (([known], [np.nan]), ([known, known], [1.0]), ([0.5], [1.0])):
        try:
            memory.update(names, errors)
        except ValueError as error:
            named = "ids" in str(error) or "td_errors" in str(error)
            require(named, f"the error about feedback names neither ids nor td_errors: {error}")
        except Exception as error:
            raise Broken(f"bad feedback raises {error!r} in place of a ValueError") from error
        require(Snapshot(memory) == before, f"feedback {names}, {errors} changed the memory")


def skips_feedback_on_what_is_gone(subject: Subject) -> None:
    """TD errors of transitions that it no longer holds, or never held, change nothing."""
    memory, _, ids, _ = life_of(subject, 30)
    gone = np.setdiff1d(np.concatenate(ids), memory.state().arrays["ids"])
    require(len(gone), "nothing was ever replaced")
    before = Snapshot(memory)
    unknown = np.array([-1, 10**12])
    memory.update(np.concatenate((gone, unknown)), np.full(len(gone) + 2, 1e9))
    require(Snapshot(memory) == before, "feedback on what is gone changed the memory")


CHECKS: tuple[Callable[[Subject], None], ...] = (
    refuses_what_is_not_finite,
    refuses_wrong_shapes,
    refuses_bad_sizes,
    refuses_bad_queries,
    refuses_bad_feedback,
    skips_feedback_on_what_is_gone,
)
