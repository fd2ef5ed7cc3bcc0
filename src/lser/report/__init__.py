"""Figures, tables and pages drawn from records alone."""

from lser.report.build import build_report, demo_page
from lser.report.table import Table
from lser.report.tables import numbers_table, summary_table

__all__ = ["Table", "build_report", "demo_page", "numbers_table", "summary_table"]
