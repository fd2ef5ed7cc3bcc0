"""Scores of known policies in the worlds of RecoGym, as data.

Each is an expected CTR over 20,000 users (`results/shops.py`; a test holds these equal to what it
wrote).
"""

from typing import NamedTuple


class Shop(NamedTuple):
    """A world without flips, and the expected CTR of policies there."""

    world: int
    random: float
    constant: float
    """The best product for everybody."""
    popular: float
    """What most people have viewed, for everybody."""
    own: float
    """What each user has viewed most."""
    oracle: float
    """Knows every user's interests."""


SHOPS = (
    Shop(42, 0.01134, 0.01506, 0.01506, 0.0179, 0.01832),
    Shop(43, 0.00973, 0.01485, 0.01485, 0.01819, 0.01848),
    Shop(44, 0.01172, 0.0172, 0.0172, 0.02007, 0.02045),
    Shop(45, 0.01054, 0.01885, 0.01885, 0.0199, 0.02023),
    Shop(46, 0.01053, 0.02101, 0.02101, 0.02219, 0.02238),
)
