"""The demo in three worlds: the figures of L in plan.md, from the committed records.

``python results/demo.py`` prints them.
"""

from pathlib import Path
from typing import NamedTuple

from committed import RESULTS

from lser.cli.demo import EARNS, ENDS, OURS, SAME
from lser.experiments import records
from lser.report.stats import Interval, holm, mean_t, paired_difference, paired_p

Scores = dict[str, dict[tuple[int, int], float]]  # by arm, by world and seed


class Demo(NamedTuple):
    """What every run ended at, and what it earned while learning."""

    final: Scores
    learning: Scores

    def times(self, arm: str, *, learning: bool = False, world: int | None = None) -> float:
        """How many times an arm's CTR the recommender has."""
        scores = self.learning if learning else self.final
        ours, theirs = (
            [score for (at, _), score in scores[name].items() if world in (None, at)]
            for name in (OURS, arm)
        )
        return sum(ours) / sum(theirs)


def demo(path: Path = RESULTS / "demo.jsonl.gz") -> Demo:
    """The committed runs, of L unless told otherwise."""
    final: Scores = {}
    learning: Scores = {}
    for run in records.find(path):
        key = int(run.experiment["simulator"]["world_seed"]), run.seed
        assert run.final is not None
        final.setdefault(run.label, {})[key] = float(run.final["metric"])
        learning.setdefault(run.label, {})[key] = float(run.final["learning_metric"])
    return Demo(final, learning)


def added(scores: Scores) -> tuple[Interval, float]:
    """What the memory adds to uniform replay with the same model and cure, and its p."""
    gap = paired_difference(scores[OURS], scores[SAME])
    return mean_t(gap), paired_p(gap)


def main() -> None:
    """Print every figure."""
    figures(demo())


def figures(found: Demo) -> None:
    """Print the figures of runs of the demo's arms."""
    for arm, final in found.final.items():
        learning = found.learning[arm].values()
        print(
            f"{arm}: final {sum(final.values()) / len(final):.3f}, lowest "
            f"{min(final.values()):.3f}, highest {max(final.values()):.3f}, while learning "
            f"{sum(learning) / len(learning):.3f}, {len(final)} runs"
        )
    for arm in (*ENDS, *EARNS):
        worlds = " ".join(f"{found.times(arm, world=world):.3f}" for world in range(3))
        gap = mean_t(paired_difference(found.final[OURS], found.final[arm]))
        print(
            f"{OURS} / {arm}: {found.times(arm):.3f} at the end (worlds {worlds}; difference "
            f"{gap.estimate:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}]), "
            f"{found.times(arm, learning=True):.3f} while learning"
        )
    tests = [added(found.final), added(found.learning)]
    for name, (gap, p), holms in zip(
        ("final", "learning"), tests, holm([p for _, p in tests]), strict=True
    ):
        print(
            f"{OURS} minus {SAME}, {name}: {gap.estimate:+.4f} [{gap.low:+.4f}, {gap.high:+.4f}], "
            f"p = {p:.3f}, after Holm {holms:.3f}"
        )


if __name__ == "__main__":
    main()
