"""Figures, tables and pages drawn from records alone."""

from lser.report.build import build_report, demo_page
from lser.report.summary import numbers_table, summary_table
from lser.report.tables import Table

__all__ = ["Table", "build_report", "demo_page", "numbers_table", "summary_table"]
