"""A small golden set recorded from the originals: ``python -m parity record FOLDER``."""
