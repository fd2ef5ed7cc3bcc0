"""The desk: where tasks say how far they are, and where the study looks."""

from collections.abc import Sequence

from lser.ray.mirror import Changes


class Desk:
    """Keeps what each task reported until the study takes it, and whether all are to stop.

    It is an actor: tasks on any node reach it, and the study needs no disk in common with them.
    """

    def __init__(self) -> None:
        self._news: dict[int, list[Changes]] = {}
        self._stopping = False

    def report(self, number: int, changes: Sequence[Changes]) -> bool:
        """Take what changed in the records of a task; whether it is to stop."""
        before = self._news.get(number)
        pairs = zip(before, changes, strict=True) if before else ()
        self._news[number] = [old.then(new) for old, new in pairs] or list(changes)
        return self._stopping

    def take(self) -> dict[int, list[Changes]]:
        """What was reported since the last time."""
        news, self._news = self._news, {}
        return news

    def stop(self) -> None:
        """From now on tell every task to stop."""
        self._stopping = True
