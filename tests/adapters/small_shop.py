"""A Bazaar so small that an agent learns it in seconds, whatever the library."""

DIALS = {
    "items": 100,
    "features": 4,
    "topics": 5,
    "slate": 5,
    "demographics": (2, 4),
    "sparsity": 0.05,
    "state_dependence": 0.3,
}
