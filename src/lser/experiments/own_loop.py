"""A record of a loop of one's own, so that `lser runs` lists it and `lser report` draws it."""

from pathlib import Path
from typing import Any, Self

from lser.checks import check_count
from lser.experiments.owner import Owner
from lser.experiments.recording import Recorder
from lser.experiments.records import CURVE, FINAL


class record:
    """Keeps what a loop of your own scores: ``with lser.record(folder, ...) as run``.

    The names say what was compared with what; runs are paired by their seed. Everything else that
    differs between runs belongs into `settings`: runs of unlike settings are never pooled. The last
    point stands as the final score unless `final` was called, and an exception marks the run
    as failed.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        simulator: str,
        memory: str,
        agent: str = "own",
        seed: int = 0,
        metric: str = "reward_per_step",
        study: str = "",
        label: str = "",
        settings: dict[str, Any] | None = None,
    ) -> None:
        experiment = {
            **(settings or {}),
            "simulator": {"name": simulator},
            "memory": {"name": memory},
            "agent": {"name": agent},
            "seed": check_count("seed", seed, low=0),
            "study": study,
            "label": label or memory,
        }
        self.folder = Path(folder)
        self._owner = Owner(self.folder)
        try:
            self._recorder = Recorder(self.folder, experiment, "a loop of one's own")
        except BaseException:
            self._owner.release()
            raise
        self._metric = metric
        self._final: dict[str, float] | None = None

    def __enter__(self) -> Self:
        for name in (CURVE, FINAL):  # of an earlier time
            (self.folder / name).unlink(missing_ok=True)
        self._recorder.begin(self._metric)
        return self

    def point(self, *, sessions: int, metric: float, **more: float) -> None:
        """Add a point to the curve: the score after so many sessions, and any further numbers."""
        last, line = self._recorder.last_line, _line(sessions, metric, more)
        if last is not None and line["sessions"] <= last["sessions"]:
            raise ValueError(f"sessions must rise, got {sessions} after {last['sessions']}")
        self._recorder.append(line)

    def final(self, *, sessions: int, metric: float, **more: float) -> None:
        """Set the final score, where it is another than the last point."""
        self._final = _line(sessions, metric, more)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self._end(error)
        finally:
            self._owner.release()

    def _end(self, error: BaseException | None) -> None:
        final = self._final or self._recorder.last_line
        if error is not None:
            self._recorder.fail(error)
        elif final is None:
            empty = ValueError(f"{self.folder}: a record needs at least one point")
            self._recorder.fail(empty)
            raise empty
        else:
            self._recorder.finish(final, {}, {})


def _line(sessions: int, metric: float, more: dict[str, float]) -> dict[str, float]:
    """An evaluation as plain numbers, whether they came as NumPy's, as tensors or as Python's."""
    numbers = {name: _number(name, value) for name, value in {"metric": metric, **more}.items()}
    return {"sessions": check_count("sessions", sessions, low=0), **numbers}


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number, got {value!r}") from None
