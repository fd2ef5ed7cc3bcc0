"""Ray itself: imported here and nowhere else, so that its absence is said in one sentence."""

from types import ModuleType


def the_ray() -> ModuleType:
    """The module `ray`; ValueError says how to install it where it is missing."""
    try:
        import ray
    except ImportError:
        raise ValueError(
            "this needs Ray, which is not installed: pip install 'ray>=2.60' (the extra `ray`)"
        ) from None
    module: ModuleType = ray
    return module
