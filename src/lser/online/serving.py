"""From a policy and an observation to a page: candidates, the draw, and its propensities."""

from typing import NamedTuple

import numpy as np

from lser.online import page_kernels as kernels
from lser.online.items import Items
from lser.online.nearest import Nearest
from lser.online.pages import Slate, draw, logits, propensities, seed_of
from lser.online.policies import Policy
from lser.online.settings import Settings
from lser.types import Bool, Float32, Int64


class Choice(NamedTuple):
    """A page and the direction that led to it."""

    slate: Slate
    direction: Float32 | None
    eligible: int


def choose(
    policy: Policy,
    observation: Float32,
    items: Items,
    nearest: Nearest,
    settings: Settings,
    *,
    k: int,
    mask: Bool | None,
    decision: str,
    visit: str,
) -> Choice:
    """Draw a page: a function of the policy, the observation, the catalogue and the ids.

    The noise on the direction belongs to the visit, so that one visitor sees one way of
    exploring; the draw of the page belongs to the decision.
    """
    direction = policy.direction(observation)
    if direction is not None:
        direction = explored(direction, settings.exploration, f"{settings.seed}", visit)
    with items.lock:
        live = items.live if mask is None else _fitted(mask, items.live)
        eligible = len(items) if mask is None else int(np.count_nonzero(live))
        count = max(settings.candidates, k)
        if direction is None:
            found = policy.rank(nearest, count, mask)
        else:
            found = nearest.search(direction, count, mask)
        slate = draw(
            seed_of(f"{settings.seed}", decision),
            found.rows,
            found.scores,
            k,
            temperature=settings.temperature,
            random_share=settings.random_share,
            eligible=eligible,
            live=live,
        )
    return Choice(slate, direction, eligible)


def explored(direction: Float32, length: float, *visit: str) -> Float32:
    """A unit direction with the noise of a visit."""
    found: Float32 = kernels.explored(direction, length, np.uint64(seed_of(*visit)))
    return found


def chances(
    policy: Policy,
    observation: Float32,
    items: Items,
    nearest: Nearest,
    settings: Settings,
    rows: Int64,
    mask: Bool | None,
) -> "np.ndarray[tuple[int, ...], np.dtype[np.float64]]":
    """What propensities (k,) a policy, without noise on its direction, gives a page of rows."""
    direction = policy.direction(observation)
    count = max(settings.candidates, len(rows))
    if direction is None:
        found = policy.rank(nearest, count, mask)
    else:
        found = nearest.search(explored(direction, 0.0), count, mask)
    eligible = len(items) if mask is None else int(np.count_nonzero(_fitted(mask, items.live)))
    logit = logits(found.scores, settings.temperature) if len(found.rows) else np.zeros(0)
    share = settings.random_share if len(found.rows) >= len(rows) else 1.0
    return propensities(rows, found.rows, logit, max(eligible, len(rows)), share)


def _fitted(mask: Bool, live: Bool) -> Bool:
    fitted = np.zeros(len(live), np.bool_)
    fitted[: len(mask)] = mask[: len(live)]
    return fitted & live
