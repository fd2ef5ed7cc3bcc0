"""Draw the report from the committed records and put its numbers into the READMEs.

``python results/build.py`` rewrites ``results/report/`` and the marked blocks of ``README.md`` and
``results/README.md``; a test checks that the blocks are what this script would write.
"""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from lser.experiments import records
from lser.report import build_report
from lser.report.cells import Panel, studies
from lser.report.estimates import estimates
from lser.report.stats import mean_t
from lser.report.verdicts import in_short, standing

RESULTS = Path(__file__).resolve().parent
ROOT = RESULTS.parent
SEED = 0  # of the bootstrap


def found() -> list[records.Record]:
    """Every committed record that is reported; tuning, on seeds of its own, has a table apart."""
    return [record for record in records.find(RESULTS) if record.study != "tuning"]


def panel_of(study_name: str, simulator: str, setting: str = "") -> Panel:
    """The panel of one study on one simulator, in one setting where it has several."""
    for study in studies(found()):
        for panel in study.panels:
            if (study.name, panel.simulator, panel.setting) == (study_name, simulator, setting):
                return panel
    raise ValueError(f"no record of {study_name} on {simulator}, {setting}")


def score_table(panel: Panel) -> str:
    """Final scores of every memory: mean with its t-interval, and the paired gap to uniform."""
    name = {"ctr": "CTR"}.get(panel.metric, panel.metric.replace("_", " "))
    other = "reference" if panel.reference is None else panel.reference.name
    lines = [f"| arm | {name} [95 %] | minus {other} [95 %] | seeds |", "|---|---|---|---|"]
    rows = sorted(estimates(panel, seed=SEED), key=lambda row: -row.mean.estimate)
    for row in rows:
        gap = "" if row.versus is None else _interval(row.versus.difference, sign=True)
        mean = _interval(row.mean)
        lines.append(f"| {row.arm.name} | {mean} | {gap} | {len(row.arm.runs)} |")
    return "\n".join(lines)


def _interval(value: Any, *, sign: bool = False) -> str:
    form = "+.3f" if sign else ".3f"
    return f"{value.estimate:{form}} [{value.low:{form}}, {value.high:{form}}]"


def headline() -> str:
    """The README's picture, tables and reading."""
    demo = panel_of("demo", "bazaar")
    taobao, longest = (
        panel_of("comparison", "virtual-taobao", f"{sessions} sessions")
        for sessions in ("15,000", "90,000")
    )
    return "\n".join(
        [
            f"![Every memory on VirtualTaobao](results/report/figures/{taobao.name}-curves.svg)",
            "",
            f"{standing(taobao, seed=SEED)} Lines are interquartile means, faint ones single runs, "
            "bands bootstrap intervals; all memories get the same users, networks and number of "
            "updates:",
            "",
            score_table(taobao),
            "",
            "Two things the paper does not say. Reward order without any hash (`reward-top`) does "
            "at least as well here: what suits one VirtualTaobao user suits the next. And the lead "
            f"does not last. {standing(longest, seed=SEED)}",
            "",
            "`make demo` shows a world in which users differ, our own. "
            f"{standing(demo, seed=SEED)}",
            "",
            "[All results, what they say, and the commands behind them](results/README.md).",
        ]
    )


def reading() -> str:
    """The plain-words reading: what the report says on top."""
    lines = []
    for title, sentences in in_short(studies(found()), seed=SEED):
        lines += [f"**{title}**", ""] if title else []
        lines += [f"- {sentence}" for sentence in sentences] + [""]
    return "\n".join(lines).strip()


def tables() -> str:
    """A table of final scores for every panel of the comparison."""
    parts = []
    for study in studies(found()):
        for panel in study.panels:
            title = " / ".join(p for p in (study.name, panel.simulator, panel.setting) if p)
            parts += [f"### {title}", "", score_table(panel), ""]
    return "\n".join(parts).strip()


def machines() -> str:
    """On what, and with which versions, the runs were made."""
    runs: Counter[tuple[str, ...]] = Counter()
    for record in records.find(RESULTS):
        machine, versions = record.meta["machine"], record.meta["versions"]
        names = ("python", "torch", "numpy", "numba", "gymnasium")
        where = f"{machine['processor']}, {machine['cores']} cores"
        runs[where, record.meta.get("engine") or "processes", *(versions[n] for n in names)] += 1
    lines = [
        "| machine | engine | Python | torch | NumPy | Numba | Gymnasium | runs |",
        "|" + "---|" * 8,
    ]
    lines += ["| " + " | ".join((*key, str(count))) + " |" for key, count in runs.most_common()]
    return "\n".join(lines)


def course() -> str:
    """LSER beside uniform along the curves on VirtualTaobao, over the seeds that both have."""
    panel = panel_of("comparison", "virtual-taobao", "15,000 sessions")
    lser, uniform = panel.arm("lser"), panel.arm("uniform")
    assert lser is not None
    assert uniform is not None
    lines = ["| sessions | LSER | uniform | difference [95 %] | seeds |", "|---|---|---|---|---|"]
    curves = [(arm.curves[0], arm.curves[1]) for arm in (lser, uniform)]
    for at, sessions in enumerate(curves[0][0]):
        if at and at % 2 == 0:
            ours, theirs = (runs[:, at] for _, runs in curves)
            lines.append(_course_row(f"{sessions:,.0f}", ours, theirs))
    ours, theirs = lser.values, uniform.values
    for first, last in ((0, 10), (10, 20)):
        part = slice(first, last)
        name = f"final, seeds {first} to {last - 1}"
        lines.append(_course_row(name, ours[part], theirs[part]))
    longest = panel_of("comparison", "virtual-taobao", "90,000 sessions").arm("lser")
    assert longest is not None
    walls = [(run.final or {})["times"]["wall"] / 60 for run in longest.runs]
    return "\n".join(
        [
            *lines,
            "",
            f"A run of LSER of 90,000 sessions took {sum(walls) / len(walls):.0f} minutes.",
        ]
    )


def _course_row(name: str, ours: Any, theirs: Any) -> str:
    gap = _interval(mean_t(ours - theirs), sign=True)
    return f"| {name} | {ours.mean():.3f} | {theirs.mean():.3f} | {gap} | {len(ours)} |"


def contrast() -> str:
    """What `contrast.py` saw."""
    lines = ["| sessions | batches with one reward only | CTR |", "|---|---|---|"]
    lines += [
        f"| {row['sessions']:,} | {100 * row['single_reward_share']:.0f} % | {row['ctr']:.3f} |"
        for row in json.loads((RESULTS / "contrast.json").read_text())
    ]
    return "\n".join(lines)


def tuning() -> str:
    """Final scores by the scale of the noise, for every memory, on the seeds of `tuning`."""
    runs = [record for record in records.find(RESULTS) if record.study == "tuning"]
    cells: dict[tuple[str, str], dict[float, list[float]]] = {}
    for run in runs:
        noises = cells.setdefault((run.simulator, run.memory), {})
        final = (run.final or {})["metric"]
        noises.setdefault(run.experiment["agent"]["noise_scale"], []).append(final)
    scales = sorted({scale for noises in cells.values() for scale in noises})
    lines = [
        "| platform | memory | " + " | ".join(f"noise {scale:g}" for scale in scales) + " |",
        "|---|---|" + "---|" * len(scales),
    ]
    for (platform, memory), noises in sorted(cells.items()):
        means = (sum(noises[scale]) / len(noises[scale]) for scale in scales)
        lines.append(f"| {platform} | {memory} | " + " | ".join(f"{m:.3f}" for m in means) + " |")
    return "\n".join(lines)


def speed() -> str:
    """Every target of the benchmarks as measured in their last committed run."""
    lines = ["| what | measured | asked for |", "|---|---|---|"]
    for path in sorted(RESULTS.glob("speed_*.json")):
        lines += speed_rows(path.stem.removeprefix("speed_"), json.loads(path.read_text()))
    return "\n".join(lines)


SHORT = (  # of the rows below, those that the front page shows
    "push 64 / cpprb PER",
    "push 64 / Tianshou",
    "LSER greedy sample / ",
    "PER sample + update",
    "updates/s: lser beside sb3",
    "training steps/s beside Stable-Baselines3",
    "training steps/s with LSER in Stable-Baselines3",
    "1,024 users: steps/s",
)


def short_speed() -> str:
    """The front page's choice of `speed`, and every target that was missed."""
    head, rule, *rows = speed().splitlines()
    kept = [row for row in rows if "(missed)" in row or any(name in row for name in SHORT)]
    return "\n".join([head, rule, *kept])


def speed_rows(name: str, data: Any) -> list[str]:
    """The rows of one benchmark's file."""
    match name:
        case "simulators":
            return [
                f"| {row['name']}, {kind}: steps/s beside the original "
                f"| {row[f'{key}_ratio']:.3g}x | {row[f'{key}_target']:.0f}x |"
                for row in data["rows"]
                for key, kind in (("vector", "1,024 users"), ("single", "one user"))
            ]
        case "replay":
            return [
                f"| {what} | {value:.3g}{'' if good else ' (missed)'} | {relation} {bound:g} |"
                for what, value, relation, bound, good in data["targets"]
                if value is not None
            ] + [
                "| slowdown of push 64 with rows of 8 + 2 numbers, where the index weighs most "
                f"/ ring's | {data['slowdown_of_narrow_rows']:.3g} | |"
            ]
        case "learner":
            return [
                f"| updates/s: lser beside {row['learner']}, {row['algorithm']} "
                f"| {row['lser_is_faster_by']:.2f}x | {row['target']:.2f}x |"
                for row in data
                if row.get("target") is not None
            ]
        case "training":
            return [
                row_text
                for row in data["rows"]
                for row_text in (
                    f"| training steps/s beside Stable-Baselines3, {row['users']} users "
                    f"| {row['speed']:.2f}x | 2x |",
                    f"| time beside the bare updates, {row['users']} users "
                    f"| {row['overhead']:.2f}x | 1.2x at most |",
                )
            ]
        case "adapters":
            return [
                f"| training steps/s with LSER in {library}, beside its own buffer "
                f"| {row['ratio']:.2f}x | {row['target']:.1f}x |"
                for library, row in data.items()
                if "ratio" in row
            ]
    raise ValueError(f"no rows for benchmark {name!r}")


def with_block(text: str, name: str, block: str) -> str:
    """`text` with what stands between the markers of `name` replaced."""
    pattern = re.compile(rf"(<!-- {name}:begin -->\n).*?(<!-- {name}:end -->)", re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"no block {name!r}")
    return pattern.sub(lambda match: f"{match[1]}{block}\n{match[2]}", text)


def readmes() -> dict[Path, str]:
    """Both READMEs as they should be."""
    front, back = ROOT / "README.md", RESULTS / "README.md"
    first = with_block(front.read_text(), "results", headline())
    second = with_block(back.read_text(), "reading", reading())
    blocks = {"machines": machines, "course": course, "contrast": contrast, "tuning": tuning}
    for name, block in blocks.items():
        second = with_block(second, name, block())
    return {
        front: with_block(first, "speed", short_speed()),
        back: with_block(with_block(second, "tables", tables()), "speed", speed()),
    }


def main() -> None:
    """Rewrite the report and the blocks."""
    build_report(found(), RESULTS / "report", seed=SEED)
    for path, text in readmes().items():
        path.write_text(text)


if __name__ == "__main__":
    main()
