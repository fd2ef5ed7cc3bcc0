"""Confidence sequences: intervals for a click rate that hold at every moment one looks.

The asymptotic confidence sequence of Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2021),
for a ratio (clicks over items shown) whose independent units are visitors: what one visitor does
on one page and on the next belongs together.
"""

import math
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

ALPHA = 0.05
TIGHTEST_AT = 1_000  # visitors at which the sequence is narrowest for its level
FEWEST = 30  # visitors before there is an interval


class Interval(NamedTuple):
    """An estimate between its bounds; nan without one."""

    estimate: float
    low: float
    high: float


@dataclass
class Tally:
    """Sums over visitors of clicks c and items shown n, kept up as pages close."""

    capacity: int = 100_000
    visitors: int = 0
    clicks: float = 0.0
    shown: float = 0.0
    clicks_squared: float = 0.0
    products: float = 0.0
    shown_squared: float = 0.0
    pages: int = 0
    reward: float = 0.0
    _each: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict, repr=False)

    def add(self, visitor: str | None, clicks: float, shown: float, reward: float = 0.0) -> None:
        """Count one page; a visitor of None is another one each time."""
        c, n = self._each.pop(visitor, (0.0, 0.0)) if visitor is not None else (0.0, 0.0)
        self.visitors += n == 0
        self.clicks_squared += (c + clicks) ** 2 - c**2
        self.products += (c + clicks) * (n + shown) - c * n
        self.shown_squared += (n + shown) ** 2 - n**2
        self.clicks += clicks
        self.shown += shown
        self.reward += reward
        self.pages += 1
        if visitor is not None:
            self._each[visitor] = (c + clicks, n + shown)
            if len(self._each) > self.capacity:
                self._each.popitem(last=False)  # should they return, they count as another

    @property
    def rate(self) -> float:
        """Clicks per item shown."""
        return self.clicks / self.shown if self.shown else math.nan

    def interval(self, alpha: float = ALPHA) -> Interval:
        """The click rate and bounds that hold at all times together with chance 1 - alpha."""
        rate = self.rate
        if self.visitors < FEWEST:
            return Interval(rate, math.nan, math.nan)
        residual = self.clicks_squared - 2 * rate * self.products + rate**2 * self.shown_squared
        mean = self.shown / self.visitors
        deviation = math.sqrt(max(residual, 0.0) / self.visitors) / mean
        half = width(self.visitors, alpha) * deviation
        return Interval(rate, max(0.0, rate - half), min(1.0, rate + half))

    def state(self) -> dict[str, Any]:
        """Plain values."""
        names = list(self._each)
        return {
            "sums": [
                self.visitors, self.clicks, self.shown, self.clicks_squared, self.products,
                self.shown_squared, self.pages, self.reward,
            ],
            "names": names,
            "each": [list(pair) for pair in self._each.values()],
        }  # fmt: skip

    def load(self, state: dict[str, Any]) -> None:
        """Continue from `state()`."""
        self.visitors, self.clicks, self.shown, self.clicks_squared = state["sums"][:4]
        self.products, self.shown_squared, self.pages, self.reward = state["sums"][4:]
        pairs = zip(state["names"], state["each"], strict=True)
        self._each = OrderedDict((name, (c, n)) for name, (c, n) in pairs)


def width(count: int, alpha: float = ALPHA) -> float:
    """Half the width of the sequence after `count` units, in standard deviations of one."""
    level = -2 * math.log(alpha)
    rho = (level + math.log(level) + 1) / TIGHTEST_AT  # ρ²
    scale = count * rho + 1
    return math.sqrt(2 * scale / (count**2 * rho) * math.log(math.sqrt(scale) / alpha))


def below(one: Tally, other: Tally, alpha: float = ALPHA) -> bool:
    """Whether the interval of `one` lies below that of `other`."""
    first, second = one.interval(alpha), other.interval(alpha)
    return first.high < second.low
