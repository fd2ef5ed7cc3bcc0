"""``lser train``: one experiment, its record, and how to take it up again."""

import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Generic

import tyro

from lser.catalogue import AGENTS, MEMORIES, SIMULATORS
from lser.cli.json_text import json_text
from lser.cli.outcome import next_commands, score_line
from lser.cli.words import quoted
from lser.experiments import records
from lser.experiments.experiment import (
    AgentParams,
    Experiment,
    MemoryParams,
    SimulatorParams,
    from_json,
)
from lser.experiments.presets import SCALES, learnable, preset
from lser.experiments.study import job_for

USAGE = """Run one experiment and keep its record.

lser train [SIMULATOR] [MEMORY] [AGENT] [--scale SCALE] [OPTIONS]

lser train --from RECORD [OPTIONS]

The names choose what the options below belong to; see lser simulators, lser memories and
lser agents. Default: bazaar, lser-steady, and the agent that learns most there, click-model on
bazaar and ddpg elsewhere. A memory may be module:Class of your own, a simulator any
Gymnasium id. --scale sets the preset they start from: quick (the default), medium, paper, or
learnable, settings under which agents learn interest-evolution, long-term-satisfaction and recogym
in minutes; --from starts
from the experiment of a record instead. Progress and scores go to stderr; stdout carries the path
of the record.

Most used: --seed, --sessions, --scale, --out, --memory.bits, --agent.noise-scale, --tensorboard.

example: lser train virtual-taobao lser --scale medium --seed 1 --memory.bits 12
"""


@dataclass(frozen=True)
class Options(Generic[SimulatorParams, MemoryParams, AgentParams]):
    """What `lser train` takes beside the experiment's own settings."""

    experiment: Annotated[
        Experiment[SimulatorParams, MemoryParams, AgentParams], tyro.conf.arg(name="")
    ]
    out: Path = Path("runs")
    """Folder under which the record's own folder is made."""
    tensorboard: bool = False
    """Log every number of the curve for TensorBoard too (needs TensorBoard)."""
    csv: bool = False
    """Write the same numbers as curve.csv into the record's folder."""
    json: bool = False
    """Print the final evaluation as JSON instead of the record's path."""
    checkpoint_seconds: float = 60.0
    """Seconds between checkpoints."""
    again: bool = False
    """Run anew over a finished record, or over checkpoints that cannot be read."""
    address: str = ""
    """The Ray cluster of --feeders, host:port or auto; by default this machine's, or a new one."""


def train(argv: list[str]) -> int:
    """Run one experiment."""
    names, rest = _names(_split(argv))
    if "--from" in rest:
        at = rest.index("--from")
        if names or at + 1 >= len(rest):
            raise ValueError("--from takes the folder of a record, and no names beside it")
        start = from_json(records.load(rest[at + 1]).experiment)
        rest = rest[:at] + rest[at + 2 :]
    else:
        start, rest = _start(names, rest)
    kinds: Any = tuple(type(part) for part in (start.simulator, start.memory, start.agent))
    options = tyro.cli(
        Options[kinds],
        args=rest,
        default=Options(start),
        prog="lser train",
        description=USAGE,
        config=(tyro.conf.AvoidSubcommands,),
    )
    command = shlex.join(["lser", "train", *argv])
    experiment = options.experiment
    if not experiment.label:
        experiment = replace(experiment, label=experiment.names[1])
    folder = Path(job_for(experiment, options.out, command).folder)
    return execute(
        experiment,
        folder,
        command=command,
        tensorboard=options.tensorboard,
        csv=options.csv,
        as_json=options.json,
        checkpoint_seconds=options.checkpoint_seconds,
        again=options.again,
        address=options.address,
    )


def execute(
    experiment: Experiment,
    folder: Path,
    *,
    command: str,
    tensorboard: bool = False,
    csv: bool = False,
    as_json: bool = False,
    checkpoint_seconds: float = 60.0,
    again: bool = False,
    address: str = "",
) -> int:
    """Run (or continue) `experiment` in `folder` with a progress display."""
    import torch  # after the arguments are parsed: --help answers without it

    from lser.cli.board import Board, Sheet
    from lser.cli.display import RunDisplay
    from lser.experiments.progress import ProgressFile, Status, Watcher
    from lser.experiments.ready import check
    from lser.experiments.run import Interrupted, Run

    kind: Callable[..., Run]
    torch.set_num_threads(1)
    check([experiment], folder)
    name = "/".join(experiment.names)
    every = checkpoint_seconds
    if experiment.feeders:
        from lser.ray.fed_run import FedRun

        kind = partial(FedRun, address=address)
    elif address:
        raise ValueError(
            f"--address {address} is the cluster of --feeders, which are not asked for"
        )
    else:
        kind = Run
    run = kind(experiment, folder, command=command, checkpoint_seconds=every, again=again)
    watchers: list[Watcher] = [ProgressFile(folder)]
    if tensorboard:
        watchers.append(Board(folder, lambda: run.replay.stats()))
    if csv:
        watchers.append(Sheet(folder, lambda: run.replay.stats()))
    interrupted = False
    with RunDisplay(name) as show:

        def watch(status: Status) -> None:
            show(status)
            for watcher in watchers:
                watcher(status)

        try:
            run.go(watch)
        except Interrupted:
            interrupted = True
    if interrupted:
        print(f"stopped; continue with: lser resume {quoted(folder)}", file=sys.stderr)
        return 130
    record = records.load(folder)
    print(score_line(record, experiment), file=sys.stderr)
    print(next_commands(folder), file=sys.stderr)
    print(json_text(record.final) if as_json else folder)
    return 0


def _split(argv: list[str]) -> list[str]:
    """--scale=medium and --from=PATH as two words, as tyro takes them for its own options."""
    early = ("--scale=", "--from=")
    return [
        part for word in argv for part in (word.split("=", 1) if word.startswith(early) else [word])
    ]


def _names(argv: list[str]) -> tuple[list[str], list[str]]:
    """The names before the options, or where there are none those behind them."""
    count = next((i for i, word in enumerate(argv) if word.startswith("-")), len(argv))
    names, rest = argv[:count], argv[count:]
    if len(names) > 3:
        raise ValueError(f"at most three names (simulator, memory, agent), got {names}")
    if not names and (behind := _behind(rest)):
        return rest[-behind:], rest[:-behind]
    return names, rest


def _behind(words: list[str]) -> int:
    """How many names of the catalogue stand at the end, the last option's value left to it."""
    catalogues = (SIMULATORS, MEMORIES, AGENTS)
    for number in (3, 2, 1):
        last = words[-number:]
        fits = len(words) > number and all(n in c for n, c in zip(last, catalogues, strict=False))
        before = words[-number - 1] if fits else ""
        if fits and (not before.startswith("-") or before.partition("=")[1] or before in _FLAGS):
            return number
    return 0


_FLAGS = {f"--{no}{f.name}" for f in fields(Options) if f.type is bool for no in ("", "no-")}


def _start(names: list[str], argv: list[str]) -> tuple[Experiment, list[str]]:
    """The experiment that `--scale` starts from, and the words beside it."""
    if "--scale" not in argv:
        return preset(*names, scale="quick"), argv
    at = argv.index("--scale")
    value, rest = argv[at + 1] if at + 1 < len(argv) else "", argv[:at] + argv[at + 2 :]
    if value == "learnable":
        return learnable(*(names or ["bazaar"])), rest  # which refuses what it has none for
    for scale in SCALES:
        if value == scale:
            return preset(*names, scale=scale), rest
    raise ValueError(f"--scale must be one of {', '.join(SCALES)}, learnable, got {value!r}")
