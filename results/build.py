"""Draw the report from the committed records and put its numbers into the READMEs.

``python results/build.py`` (``make report``) draws ``results/report/``, which is not committed,
copies the figures that pages show to ``results/figures/`` and rewrites the marked blocks of
``README.md``, ``results/README.md`` and ``results/plan.md``; a test checks that these are what it
would write.
"""

import json
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import at_length
import by_study
import cure_options
import delayed
import generous
import interest
import interest_watch
import lead
import locality_page
import offers
import paper_regime
import recommender
import references
import regime_bounded
import regime_options
import regions
import regions_cured
import regions_large
import taobao_tuning
import tuned_alike
from committed import RESULTS, SEED, findings, found, packed, panel_of
from first import answer, first_screen, history, notes
from front import headline
from sections import outcomes as of_sections
from speed import short_speed, speed

from lser.report import build_report
from lser.report.findings import Finding
from lser.report.stats import Interval, mean_t
from lser.report.style import interval, name_of, number
from lser.report.verdicts import in_short

ROOT = RESULTS.parent
OUTCOMES = {  # of studies without a section, by the name of their block in the plan
    "outcome_a": paper_regime.reading,
    "outcome_cc": generous.reading,
    "outcome_e": delayed.reading,
    "outcome_f": interest.reading,
    "outcome_f_watch": interest_watch.reading,
    "outcome_g": offers.reading,
    "outcome_i": tuned_alike.reading,
    "outcome_i_taobao": taobao_tuning.reading,
    "outcome_m": cure_options.reading,
    "outcome_o": recommender.reading,
    "outcome_p": lead.reading,
    "outcome_q": regime_bounded.reading,
    "outcome_r": regime_options.reading,
    "outcome_u": regions.reading,
    "outcome_v": regions_cured.reading,
    "outcome_w": taobao_tuning.cure_reading,
    "outcome_x": regions_large.reading,
}
TITLE = "Experience replay for online recommendation"
SHOWN = re.compile(r"(?<!docs/)figures/([a-z0-9.-]+\.svg)")


def score_table(found: Finding) -> str:
    """Final scores of every memory: mean with its t-interval, and the paired gap to uniform."""
    panel = found.panel
    other = "reference" if panel.reference is None else panel.reference.name
    head = f"| arm | {name_of(panel.metric)} [95 %] | minus {other} [95 %] | seeds |"
    lines = [head, "|---|---|---|---|"]
    for row in sorted(found.estimates, key=lambda row: -row.mean.estimate):
        gap = "" if row.versus is None else _interval(row.versus.difference, sign=True)
        lines.append(f"| {row.arm.name} | {_interval(row.mean)} | {gap} | {len(row.arm.runs)} |")
    known = panel.scale.policies if panel.scale else ()
    lines += [f"| *{one.name}* | {number(one.score, digits=3)} | | |" for one in known]
    return "\n".join(lines)


def _interval(value: Interval, *, sign: bool = False) -> str:
    """As the report shows it, always with three digits, and signs that one can copy."""
    return interval(value, sign=sign, digits=3).replace("−", "-")


def reading() -> str:
    """The plain-words reading: what the report says on top."""
    lines = []
    for title, sentences in in_short(findings()):
        lines += [f"**{title}**", ""] if title else []
        lines += [f"- {sentence}" for sentence in sentences] + [""]
    return "\n".join(lines).strip()


def tables() -> str:
    """A table of final scores for every panel of every study that is about scores."""
    parts = []
    for study in (study for study in findings() if study.study.spec.scored):
        for one in study.panels:
            names = (study.study.name, one.panel.simulator, one.panel.setting)
            title = " / ".join(name for name in names if name)
            parts += [f"### {title}", "", score_table(one), ""]
    return "\n".join(parts).strip()


def machines() -> str:
    """On what, and with which versions, the runs were made."""
    runs: Counter[tuple[str, ...]] = Counter()
    for record in packed():
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
    panel = panel_of("comparison", "virtual-taobao", "15,000 sessions").panel
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
    longest = panel_of("comparison", "virtual-taobao", "90,000 sessions").panel.arm("lser")
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
    runs = [record for record in packed() if record.study == "tuning"]
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


def with_block(text: str, name: str, block: str) -> str:
    """`text` with what stands between the markers of `name` replaced."""
    pattern = re.compile(rf"(<!-- {name}:begin -->\n).*?(<!-- {name}:end -->)", re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"no block {name!r}")
    filled = f"{block}\n" if block else ""
    return pattern.sub(lambda match: f"{match[1]}{filled}{match[2]}", text)


def readmes() -> dict[Path, str]:
    """Both READMEs and the plan as they should be."""
    front, back, plan = ROOT / "README.md", RESULTS / "README.md", RESULTS / "plan.md"
    first = with_block(front.read_text(), "results", headline())
    second = with_block(back.read_text(), "reading", reading())
    blocks = {
        "first": first_screen,
        "studies": by_study.page,
        "history": history,
        "machines": machines,
        "course": course,
        "contrast": contrast,
        "tuning": tuning,
        "references": references.table,
    }
    for name, block in blocks.items():
        second = with_block(second, name, block())
    outcomes = plan.read_text()
    for name, said in {**OUTCOMES, **of_sections()}.items():
        outcomes = with_block(outcomes, name, said())
    return {
        front: with_block(first, "speed", short_speed()),
        back: with_block(with_block(second, "tables", tables()), "speed", speed()),
        plan: outcomes,
    }


def main() -> None:
    """Rewrite the report, the figures that pages show, and the blocks."""
    report = build_report(
        found(),
        RESULTS / "report",
        seed=SEED,
        title=TITLE,
        answer=[answer()],
        notes=notes(),
    )
    texts = readmes()
    for path, text in texts.items():
        path.write_text(text)
    (RESULTS / "figures").mkdir(exist_ok=True)
    for page in (at_length, locality_page):
        (report.parent / "figures" / f"{page.NAME}.svg").write_text(page.picture().svg)
    for name in sorted({name for text in texts.values() for name in SHOWN.findall(text)}):
        shutil.copyfile(report.parent / "figures" / name, RESULTS / "figures" / name)
    print(report)


if __name__ == "__main__":
    main()
