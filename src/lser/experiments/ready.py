"""Checks before anything starts: what can be seen now is one paragraph, not many traces."""

from collections.abc import Iterable
from pathlib import Path

from lser.catalogue import AGENTS, MEMORIES
from lser.experiments.build import make_env, sizes_of
from lser.experiments.experiment import Experiment
from lser.experiments.preflight import check_memory


def check(experiments: Iterable[Experiment], out: Path | str, *, side_by_side: int = 1) -> None:
    """Refuse runs that cannot begin: their folder, device, parts, spaces and memory are looked at.

    `side_by_side` so many of them must fit into memory together.
    Every simulator is made once, whatever its settings, so that missing weights are said once.
    """
    check_folder(out)
    seen: set[tuple[str, ...]] = set()
    spaces: dict[str, tuple[int, int]] = {}
    for experiment in experiments:
        simulator, memory, agent = experiment.names
        check_device(getattr(experiment.agent, "device", "cpu"))
        if simulator not in spaces or (memory, agent) not in seen:
            spaces[simulator] = sizes(experiment)
            seen.add((memory, agent))
            for kind, name in ((MEMORIES, memory), (AGENTS, agent)):
                kind[name].load()
        needs = experiment.capacity, *spaces[simulator]
        check_memory(*needs, experiment.memory, runs=side_by_side)


def sizes(experiment: Experiment) -> tuple[int, int]:
    """The numbers of an observation and of an action; ValueError for spaces no agent acts in."""
    env = make_env(experiment, 1)
    try:
        observation_dim, action = sizes_of(env)
    finally:
        env.close()
    assert action.shape is not None
    return observation_dim, action.shape[0]


def check_folder(out: Path | str) -> None:
    """Refuse a place for records that is a file, or lies under one."""
    folder = Path(out)
    for place in (folder, *folder.parents):
        if place.exists():
            if not place.is_dir():
                raise ValueError(
                    f"--out {str(out)!r}: {str(place)!r} is a file and records need a folder; "
                    "give another --out"
                )
            return


def check_device(device: str) -> None:
    """Refuse a device that this machine does not have, or that is none."""
    if device == "cpu":
        return
    import torch

    try:
        kind = torch.device(device).type
    except RuntimeError:
        raise ValueError(f"device must name a torch device, got {device!r}") from None
    if kind == "cuda" and not torch.cuda.is_available():
        raise ValueError(
            f"device {device!r}: PyTorch sees no CUDA GPU on this machine; use cpu "
            "(--agent.device cpu, and for studies --engine processes)"
        )
