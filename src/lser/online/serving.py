"""From a policy and an observation to a page: candidates, the draw, and its propensities."""

from typing import NamedTuple

import numpy as np

from lser.online import page_kernels as kernels
from lser.online.items import Found, Items
from lser.online.nearest import Nearest
from lser.online.pages import Slate, draw, logits, propensities, seed_of
from lser.online.policies import Directed, Policy, Ranked
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
    direction = None
    if isinstance(policy, Directed):
        way = policy.direction(observation)
        direction = explored(way, settings.exploration, f"{settings.seed}", visit)
    with items.lock:
        live = items.live if mask is None else _fitted(mask, items.live)
        eligible = len(items) if mask is None else int(np.count_nonzero(live))
        count = max(settings.candidates, k)
        found = _found(policy, direction, nearest, count, mask)
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
    found = candidates(policy, observation, nearest, max(settings.candidates, len(rows)), mask)
    eligible = len(items) if mask is None else int(np.count_nonzero(_fitted(mask, items.live)))
    logit = logits(found.scores, settings.temperature) if len(found.rows) else np.zeros(0)
    share = settings.random_share if len(found.rows) >= len(rows) else 1.0
    return propensities(rows, found.rows, logit, max(eligible, len(rows)), share)


def candidates(
    policy: Policy, observation: Float32, nearest: Nearest, count: int, mask: Bool | None
) -> Found:
    """What a page is drawn from, without noise on the direction."""
    direction = None
    if isinstance(policy, Directed):
        direction = explored(policy.direction(observation), 0.0)
    return _found(policy, direction, nearest, count, mask)


def _found(
    policy: Policy, direction: Float32 | None, nearest: Nearest, count: int, mask: Bool | None
) -> Found:
    """The nearest to a direction, or what the policy ranks first."""
    if isinstance(policy, Ranked):
        return policy.rank(nearest, count, mask)
    assert direction is not None
    return nearest.search(direction, count, mask)


def _fitted(mask: Bool, live: Bool) -> Bool:
    fitted = np.zeros(len(live), np.bool_)
    fitted[: len(mask)] = mask[: len(live)]
    return fitted & live
