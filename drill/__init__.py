"""Faults on purpose, and a count of what they broke: ``make drill``."""
