"""One report with every study, built once for all tests that only look at it."""

from pathlib import Path

import pytest
import synthetic

from lser.experiments.records import Record
from lser.report import build_report, demo_page


@pytest.fixture(scope="session")
def every_study() -> list[Record]:
    keep = ("lser", "per", "reward-top", "random-code", "uniform")
    compared = [
        run
        for run in synthetic.comparison()
        if run.simulator in ("virtual-taobao", "recogym") and run.memory in keep
    ]
    broken = [
        synthetic.record("epsilon", "greedy 1", 90, level=0.5, status="failed"),
        synthetic.record("epsilon", "greedy 1", 91, level=0.5, status="running"),
    ]
    own = [synthetic.record("mine", f"arm {i}", s, level=0.5) for i in (9, 10) for s in range(3)]
    return [*compared, *synthetic.small_studies(), *broken, *own]


@pytest.fixture(scope="session")
def report(every_study: list[Record], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_report(every_study, tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo_page(synthetic.demo(), tmp_path_factory.mktemp("demo"))
