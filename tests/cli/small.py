"""Small runs and records for the tests of commands."""

from lser.cli import main
from lser.experiments.recording import write_json

SMALL = ["--users", "4", "--batch-size", "16", "--capacity", "500", "--sessions", "12"]
SMALL += ["--evaluate-every", "6", "--evaluate-sessions", "5", "--final-sessions", "8"]


def trained(out, *arguments):
    """The folder of one small finished run."""
    assert main(["train", *arguments, *SMALL, "--out", str(out)]) == 0
    return next(out.rglob("experiment.json")).parent


def written(folder, label="lser", *, seed=0, status="done", curve=(), **files):
    """A record as small as can be, written by hand; `files` replace its parts."""
    parts = {part: {"name": part} for part in ("simulator", "memory", "agent")}
    folder.mkdir(parents=True)
    held = {
        "experiment": {**parts, "seed": seed, "label": label},
        "meta": {"status": status, "metric": "ctr"},
        "final": {"metric": 0.5, "sessions": 10},
        **files,
    }
    for name, value in held.items():
        if value is not None:
            write_json(folder / f"{name}.json", value)
    if curve:
        lines = [f'{{"sessions": {at}, "metric": {score}}}\n' for at, score in enumerate(curve)]
        (folder / "curve.jsonl").write_text("".join(lines))
    return folder
