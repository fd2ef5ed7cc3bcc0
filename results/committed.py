"""The committed records, and what they say, computed once."""

from functools import cache
from pathlib import Path

from lser.experiments import records
from lser.report.findings import Finding, StudyFindings, find_out
from lser.report.sorting import studies

RESULTS = Path(__file__).resolve().parent
SEED = 0  # of the bootstrap
ELSEWHERE = (  # studies with pages of their own
    *("tuning", "equal-tuning", "tuned-alike", "reruns"),
    *("taobao-tuning", "taobao-tuned-alike", "taobao-tuned-cure"),
    *("generosity", "generous-lead"),
)


def packed() -> list[records.Record]:
    """Every committed record; what lies further in is not read, as long as the plan says so."""
    return [run for file in sorted(RESULTS.glob(records.PACKED)) for run in records.find(file)]


def found() -> list[records.Record]:
    """Every committed record that is reported; tuning, I, J, Q, W and CC are told elsewhere."""
    return [
        record
        for record in packed()
        if record.study not in ELSEWHERE and not record.label.endswith("bounded values")
    ]


def by_arm(file: Path) -> dict[str, dict[int, records.Record]]:
    """The runs of one file, by arm and seed."""
    runs: dict[str, dict[int, records.Record]] = {}
    for run in records.find(file):
        runs.setdefault(run.label, {})[run.seed] = run
    return runs


@cache
def findings() -> list[StudyFindings]:
    """What the committed records say."""
    return find_out(studies(found()), seed=SEED)


def panel_of(study_name: str, simulator: str, setting: str = "") -> Finding:
    """The panel of one study on one simulator, in one setting where it has several."""
    for study in findings():
        for one in study.panels:
            key = (study.study.name, one.panel.simulator, one.panel.setting)
            if key == (study_name, simulator, setting):
                return one
    raise ValueError(f"no record of {study_name} on {simulator}, {setting}")
