"""A fleet: runs side by side, each with its own users and memory, all learning at once.

One process has the stacked learners; crews of seats have the rest (`crew.py`). Seats that go in
lockstep are a squad (`squad.py`). On an accelerator memories that wait for TD errors have a squad
of their own: their way from errors to the next batch decides how fast they are, and nobody else
need wait for it.
"""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from math import inf

import torch

from lser.checks import check_count
from lser.experiments.experiment import from_json
from lser.experiments.study import Job
from lser.fleet.awaited import Awaited, Course
from lser.fleet.seat import sees_goals, waits_for_errors
from lser.fleet.squad import Muster, Reached, Squad

log = logging.getLogger("lser")

SAY_EVERY = 10.0  # seconds
WAITING = 3.0  # a crew's time for a run that waits for TD errors, over that for another


class Fleet:
    """Jobs of equal architecture and pace but for goals, side by side until each has ended."""

    def __init__(
        self,
        jobs: Sequence[Job],
        *,
        device: str = "cuda",
        workers: int = 0,
        checkpoint_seconds: float = inf,
        apart: bool | None = None,
        split: int = 1,
    ) -> None:
        """Build the jobs' runs in `workers` processes, or in this one, and stack their learners.

        With `apart` memories that wait for TD errors go at their own pace; by default they do
        where updates run beside this process. The others make `split` squads of equal size.
        """
        check_count("split", split)
        name = device_name(device)
        if apart is None:
            apart = torch.device(device).type != "cpu"
        self._checkpoint_seconds = checkpoint_seconds
        self._asked = sum(from_json(dict(job.experiment)).sessions for job in jobs)
        musters = mustered(jobs, workers, apart=apart, split=split)
        self.squads: list[Squad] = []
        try:
            for some in musters:
                self.squads.append(Squad(some, device, name))
            self._take_seats()
        except BaseException:
            for squad in self.squads:
                squad.end()  # its crews would wait for this process for ever
            raise
        self.squads = [squad for squad in self.squads if squad.seats]
        self.seats = sum(squad.seats for squad in self.squads)

    def _take_seats(self) -> None:
        joined = [squad.join() for squad in self.squads]
        if any(len({seat.kind for seat in seats}) > 1 for seats in joined):
            raise ValueError("runs of a fleet must have equal architectures and pace")
        for squad, seats in zip(self.squads, joined, strict=True):
            if seats:
                squad.sit()
            else:
                squad.end()

    def go(self, stop: Callable[[], bool] = lambda: False) -> bool:
        """Run to the end of every run, or until `stop`, with checkpoints; whether all ended."""
        began, first, said = time.monotonic(), self.reached.steps, [time.monotonic()]

        def asked() -> bool:
            if time.monotonic() - said[0] > SAY_EVERY:
                said[0] = time.monotonic()
                self._say(said[0] - began, first)
            return stop()

        courses = [squad.course(asked, self._checkpoint_seconds) for squad in self.squads]
        for course in courses:
            next(course)  # it has begun, so that it comes to its end whatever happens to others
        try:
            alternate(courses)
        finally:
            for course in courses:
                course.close()
        return bool(self.seats) and not self.reached.running

    @property
    def reached(self) -> Reached:
        """How far all runs are."""
        parts = [squad.reached for squad in self.squads] or [Reached(0, 0, 0)]
        return Reached(*map(sum, zip(*parts, strict=True)))

    @property
    def times(self) -> dict[str, float]:
        """Seconds of what each squad's time went to."""
        return {
            part if len(self.squads) == 1 else f"{part} of squad {place}": seconds
            for place, squad in enumerate(self.squads)
            for part, seconds in squad.times.items()
        }

    def _say(self, seconds: float, first: int) -> None:
        running, steps, sessions = self.reached
        pace = (steps - first) / max(seconds, 1e-9)
        left = (self._asked - sessions) * steps / max(1, sessions) / max(pace, 1e-9)
        log.info(
            "fleet of %d runs: %s agent-steps/s, %s of %s sessions, %d:%02d min left",
            *(running, f"{pace:,.0f}", f"{sessions:,}", f"{self._asked:,}"),
            *divmod(max(0, int(left)), 60),
        )


def mustered(jobs: Sequence[Job], workers: int, *, apart: bool, split: int = 1) -> list[Muster]:
    """The jobs in squads, by whether they see a goal and, with `apart`, wait for TD errors.

    Those that do not wait are dealt to `split` squads.
    """
    experiments = [from_json(dict(job.experiment)) for job in jobs]
    waits = [waits_for_errors(one) for one in experiments]
    squads: dict[tuple[bool, bool, int], list[Job]] = {}
    # those that wait come first: no crew should have many of those that make others wait
    for place, at in enumerate(sorted(range(len(jobs)), key=lambda at: not waits[at])):
        alone = apart and waits[at]
        kind = alone, sees_goals(experiments[at]), 0 if alone else place % split
        squads.setdefault(kind, []).append(jobs[at])
    if len(squads) == 1:
        return [Muster(some, workers) for some in squads.values()]
    costs = [WAITING if kind[0] else 1.0 for kind in squads]
    crews = apportioned(workers, [len(some) for some in squads.values()], costs)
    return [
        Muster(some, few, urgent=kind[0])
        for (kind, some), few in zip(squads.items(), crews, strict=True)
    ]


def apportioned(workers: int, runs: Sequence[int], costs: Sequence[float]) -> list[int]:
    """Crews for so many runs each, one at least, the next where a crew has most to do.

    There are no more of them than `workers`, but for the one that each must have: crews go in
    lockstep, and all would wait for one that has no core.
    """
    found = [min(workers, 1)] * len(runs)
    for _ in range(workers - len(runs)):
        growing = [at for at in range(len(runs)) if found[at] < runs[at]]
        if growing:
            found[max(growing, key=lambda at: costs[at] * runs[at] / found[at])] += 1
    return found


def alternate(courses: Iterable[Course]) -> None:
    """Go on with each course when what it waits for is there; the last one waits by itself.

    The first comes between any two of the others: it is the one that cannot wait.
    """
    awaited: dict[Course, Awaited | None] = dict.fromkeys(courses)

    def go_on(course: Course) -> None:
        what = awaited[course]
        if what is None or what.ready():
            try:
                awaited[course] = next(course)
            except StopIteration:
                del awaited[course]

    while len(awaited) > 1:
        first, *others = awaited
        for course in others:
            if first in awaited:
                go_on(first)
            go_on(course)
    for course in awaited:
        for _ in course:
            pass


def device_name(device: str) -> str:
    """The device in words."""
    return torch.cuda.get_device_name(device) if device.startswith("cuda") else device
