"""Experiments as data, their runs and records, and studies of many."""
