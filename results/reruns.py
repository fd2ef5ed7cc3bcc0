"""How much of the spread is the machine's: the figures of J in plan.md.

``python results/reruns.py run FOLDER`` makes the runs on a CPU, one after another, and goes on
where it stood; those on a second device are in the fleet of H (``planned.py FOLDER h``).
"""

import sys
from pathlib import Path

from campaign import carry_out
from cells import CPU, rerun
from committed import RESULTS

from lser.experiments.study import Job, job_for

FILE = RESULTS / "reruns.jsonl.gz"


def jobs(folder: Path) -> list[Job]:
    """The runs on a CPU."""
    return [job_for(one, folder, "python results/reruns.py run") for one in rerun(CPU)]


def main(words: list[str]) -> None:
    """Run."""
    carry_out(words[0], jobs(Path(words[1])), FILE)


if __name__ == "__main__":
    main(sys.argv[1:])
