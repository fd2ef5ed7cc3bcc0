"""Does the lead at 15,000 sessions hold on new seeds: the figures of C in plan.md.

``python results/planned.py FOLDER c`` makes the runs, ``python results/confirmation.py pack
FOLDER...`` writes ``confirmation.jsonl.gz``; without arguments it prints every figure from there.
"""

import sys
from functools import cache

from committed import RESULTS
from delayed import gap, verdict
from scored import OUTCOMES, Scored, levels, pack_or_print, row, scored, told

from lser.experiments import records
from lser.report.stats import mean_t, welch
from lser.report.style import interval, name_of, number

FILE = RESULTS / "confirmation.jsonl.gz"
OURS, CONTROLS = "lser", ("uniform", "reward-top", "shuffled-code")
ARMS, NOISES = (OURS, *CONTROLS), (0.1, 0.3)


@cache
def runs(noise: float) -> Scored:
    """The runs at one level of noise."""
    found: dict[str, dict[int, records.Record]] = {arm: {} for arm in ARMS}
    for run in records.find(FILE):
        if run.experiment["agent"]["noise_scale"] == noise:
            found[run.label][run.seed] = run
    return scored(found)


def known() -> bool:
    """Whether it has been run."""
    return FILE.is_file()


def outcome() -> str:
    """The primary test in one word, after Holm: above, below or not separated."""
    found, p = runs(NOISES[0]).against(OURS, CONTROLS)["uniform"]
    return verdict(found.mean, p)


def reading() -> str:
    """What C says in words; nothing before it has been run."""
    if not known():
        return ""
    quiet = runs(NOISES[0])
    found = quiet.against(OURS, CONTROLS)
    scale = quiet.scale
    assert scale.constant is not None
    return (
        "**The lead on new seeds** (C of the plan; VirtualTaobao, 15,000 sessions, "
        f"{found['uniform'][0].seeds} paired seeds, {quiet.whole()}). The primary test "
        f"{OUTCOMES[outcome()]}. At noise .1 the final CTR is "
        f"{levels({arm: quiet.mean(arm) for arm in ARMS})}; LSER minus each of them, Holm over the "
        f"three: {told(found)}. Shares of the possible: "
        f"{levels({arm: quiet.share(arm) for arm in ARMS}, 2)}, the {scale.constant.name} "
        f"{scale.share(scale.constant.score):.2f} ({scale.random.name} "
        f"{number(scale.random.score)}, {scale.best.name} {number(scale.best.score)}); reward per "
        "step, which is what agents are trained on, "
        f"{levels({arm: quiet.mean(arm, 'reward_per_step') for arm in ARMS}, 2)}. Runs that end "
        "more than a tenth of the possible below their best: "
        f"{', '.join(quiet.fell(quiet.runs))}. {_beside()} LSER's own runs at noise .1 "
        "are K's *as printed* made again: that arm was seen before, the differences were not."
    )


def in_short() -> str:
    """The primary test in a sentence for the first screen; nothing before it has been run."""
    if not known():
        return ""
    quiet = runs(NOISES[0])
    found = quiet.against(OURS, CONTROLS)
    return (
        f"**On twenty new seeds** (C of the plan, 100 to 119, noise .1, 15,000 sessions, "
        f"{quiet.whole()}) the "
        f"primary test {OUTCOMES[outcome()]}: LSER minus each, Holm over the three: {told(found)}; "
        f"final CTR {levels({arm: quiet.mean(arm) for arm in ARMS})}."
    )


def _beside() -> str:
    """The other level of noise, as far as it has been run."""
    loud = runs(NOISES[1])
    if not {OURS, "uniform"} <= loud.runs.keys():
        return "Noise .3 was not run."
    means = levels({arm: loud.mean(arm) for arm in loud.runs})
    found = gap(loud.of(OURS), loud.of("uniform"))
    return (
        f"At noise .3, without a test ({loud.whole()}): {means}, LSER minus uniform "
        f"{interval(found.mean, sign=True)} over {found.seeds} seeds; fell: "
        f"{', '.join(loud.fell(loud.runs))}."
    )


def table() -> str:
    """Every arm at both levels of noise."""
    lines = [
        "| noise | arm | CTR [95 %] | share of the possible | reward per step | minus uniform "
        "[95 %] | unpaired [95 %] | over training | sessions to half (runs) | to .9 (runs) | worst "
        "run | fell | seeds |",
        "|" + "---|" * 13,
    ]
    for noise in NOISES:
        found = runs(noise)
        for arm in sorted(found.runs, key=lambda name: -found.mean(name)):
            ends, theirs = found.of(arm), found.of("uniform")
            pair = [
                interval(gap(ends, theirs).mean, sign=True),
                interval(welch(list(ends.values()), list(theirs.values())), sign=True),
            ]
            lines.append(
                row(
                    *(f"{noise:g}", name_of(arm), interval(mean_t(list(ends.values())))),
                    *(f"{found.share(arm):.2f}", f"{found.mean(arm, 'reward_per_step'):.2f}"),
                    *(["", ""] if arm == "uniform" else pair),
                    *(f"{found.area(arm):.3f}", found.reached(arm, 0.5), found.reached(arm, 0.9)),
                    *(f"{min(ends.values()):.3f}", str(sum(found.fallen(arm).values()))),
                    str(len(ends)),
                )
            )
    return "\n".join(lines)


def block() -> str:
    """The words and the table."""
    return f"{reading()}\n\n{table()}" if known() else ""


if __name__ == "__main__":
    pack_or_print(sys.argv[1:], "confirmation", FILE, block)
