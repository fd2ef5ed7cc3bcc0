"""Ours beside the original simulators, on fresh seeds: ``python -m parity``."""
