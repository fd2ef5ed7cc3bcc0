"""The results in plain words, every number computed from the records."""

from collections.abc import Callable, Sequence

import numpy as np
import parts
from scipy.stats import fisher_exact

from lser.report.findings import Finding, StudyFindings, Versus, between
from lser.report.measures import reached
from lser.report.overview import overview
from lser.report.panels import Arm, columns
from lser.report.sentences import no_control
from lser.report.stats import area_under_curve
from lser.report.style import interval, listing, name_of, number

FIRST, CONFIRMING = range(10), range(10, 20)  # seeds of the headline: seen before, and declared
Find = Callable[..., Finding]


def confirmed(taobao: Finding) -> Versus:
    """The declared test on seeds that had not been seen."""
    ours, theirs = (
        (arm.name, {seed: arm.scores[seed] for seed in CONFIRMING}) for arm in arms(taobao)
    )
    return between(ours, theirs)


def confirmation(taobao: Finding) -> str:
    """The declared test in words."""
    pair = confirmed(taobao)
    return (
        f"LSER minus uniform {interval(pair.difference, sign=True)}, p = {number(pair.p)}, on "
        f"seeds {CONFIRMING[0]} to {CONFIRMING[-1]}, declared before they ran"
    )


def headline(taobao: Finding, studies: Sequence[StudyFindings]) -> str:
    """LSER and uniform at 15,000 sessions."""
    lser, uniform = arms(taobao)
    everything = taobao.versus(lser, uniform)
    early = [_area(arm, 3_000) for arm in (lser, uniform)]
    soon = between(("lser", early[0]), ("uniform", early[1])).difference
    whole = taobao.measured("lser")
    rivals = [arm for arm in taobao.panel.arms if arm.name in ("per", "der", "aer", "ser", "her")]
    level = [name_of(a.name) for a in rivals if taobao.versus(lser, a).verdict != "above"]
    table = overview(studies)
    assert table is not None
    kept = "survives" if table.readings["lser"][0] == "above" else "does not survive"
    assert whole is not None
    assert whole.area_versus is not None
    return (
        f"**VirtualTaobao, 15,000 sessions: LSER ends higher, and is not sooner.** "
        f"{confirmation(taobao)}; all {everything.pairs} seeds together "
        f"{interval(everything.difference, sign=True)} (unpaired "
        f"{interval(everything.unpaired, sign=True)}), which is the third look at these data and "
        f"{kept} Holm's correction over the table above. Averaged over the first 3,000 sessions "
        f"LSER is {interval(soon, sign=True)}, over the whole training "
        f"{interval(whole.area_versus.difference, sign=True)}. Of the paper's other memories "
        f"{listing(level)} {'is' if len(level) == 1 else 'are'} not separated from it."
    )


def steadiness(taobao: Finding) -> str:
    """How many runs ever reach .9, and how many fall."""
    lser, uniform = arms(taobao)
    hits = [round(reached(arm, 0.9).share.estimate * len(arm.runs)) for arm in (lser, uniform)]
    sizes = [len(arm.runs) for arm in (lser, uniform)]
    table = [[hit, size - hit] for hit, size in zip(hits, sizes, strict=True)]
    p = float(fisher_exact(table).pvalue)
    fell = [_fell(taobao, name) for name in ("lser", "uniform")]
    return (
        f"**What is strongest is how many runs get there**: {hits[0]} of {sizes[0]} LSER runs ever "
        f"reach a CTR of .9, of uniform's {hits[1]} of {sizes[1]} (Fisher's p = {number(p)}); "
        f"{fell[0]} of LSER and {fell[1]} of uniform end more than a tenth of the possible below "
        "their best."
    )


def carried(taobao: Finding, studies: Sequence[StudyFindings]) -> str:
    """What the controls say."""
    pair = taobao.against("lser", "reward-top")
    assert pair is not None
    best = max(taobao.estimates, key=lambda row: row.mean.estimate).arm.name
    place = "is the best of all here" if best == "reward-top" else f"ends below {best} here"
    bazaar = next(study for study in studies if study.study.spec.reads == "map")
    slope = bazaar.slope("lser", "reward-top")
    assert slope is not None
    return (
        "**What carries it is reward order, not locality.** `reward-top`, one bucket for "
        f"everybody, {place} (LSER minus reward-top "
        f"{interval(pair.difference, sign=True)}). On the Bazaar map, as run, LSER's lead over "
        "reward-top falls as the right page depends "
        f"more on the user: {interval(slope, sign=True)} of the score from state dependence 0 to "
        "1. That is evidence against locality in that regime (batch 128 of 12,000 transitions, "
        f"discount .99, 6 bits). And {no_control(taobao)}."
    )


def lasting(longest: Finding, epsilon: Finding) -> str:
    """What happens at the paper's length, and what T_r did."""
    pair = longest.against("lser", "uniform")
    assert pair is not None
    worst = longest.measured("lser")
    assert worst is not None
    greedy = epsilon.against("greedy 1", "greedy 0.9")
    assert greedy is not None
    return (
        f"**It does not last.** At the paper's 90,000 sessions LSER minus uniform is "
        f"{interval(pair.difference, sign=True)} over {pair.pairs} seeds, too few to decide "
        f"anything; {_fell(longest, 'lser')} LSER runs end far below their best, the worst at "
        f"{number(worst.worst)}, {_fell(longest, 'uniform')} of uniform do. Batches without "
        "contrast were the likely cause: [many hold one single reward](#contrast), drawing only "
        "the best is the worst share there is (greedy 1 minus .9: "
        f"{interval(greedy.difference, sign=True)}), and T_r, which sets it to 1, harmed every run "
        f"it touched (see the claims). {_cause()}"
    )


def _cause() -> str:
    """What AA says of the cause."""
    if not parts.known():
        return "It stays likely: B of the plan, which was to decide between causes, is open."
    newest, contrast, bounds = (
        parts.of(arm) for arm in ("the newest alone", "contrast alone", "bounds alone")
    )
    if parts.answer("the newest alone") == "open" or parts.answer("contrast alone") != "open":
        raise ValueError("the records no longer say that the newest alone keep runs from falling")
    return (
        f"AA of the plan speaks against it: with contrast alone {contrast} runs fall, with bounded "
        f"values alone {bounds}, and with the newest transitions in every batch {newest}. What the "
        "critic lacks are, it seems, the steps that its agent takes now."
    )


def interest(found: Finding) -> str:
    """The loss on the trained objective."""
    scale = found.panel.reward_scale
    parts = []
    for name in ("lser", "reward-top", "random-code"):
        measured = found.measured(name)
        assert measured is not None
        assert measured.reward_versus is not None
        parts.append(f"{name} {interval(measured.reward_versus.difference, sign=True)}")
    levels = [found.measured(name) for name in ("lser", "uniform")]
    assert scale is not None
    shown = [number(m.reward.estimate) for m in levels if m is not None and m.reward is not None]
    return (
        "**On interest evolution LSER clearly loses on what it is trained for.** Agents are paid "
        "in watch time, not in the platform's quality score. Reward per step: LSER "
        f"{shown[0]}, uniform {shown[1]}, {scale.random.name} {number(scale.random.score)}, "
        f"{scale.best.name} {number(scale.best.score)}. Minus uniform: {'; '.join(parts)}. A "
        'memory of 10,000 that keeps the best rewards (`store="reward"`) fills early there; in '
        "quality nobody learned anything."
    )


def recogym(found: Finding) -> str:
    """Nothing was learned."""
    scale = found.panel.scale
    assert scale is not None
    assert scale.constant is not None
    finals = [row.mean.estimate for row in found.estimates]
    starts = [run.curve[0]["metric"] for run in found.panel.arms[0].runs]
    return (
        f"**On RecoGym nobody learned anything.** Untrained actors score {np.mean(starts):.4f}, "
        f"the {len(finals)} memories end at {min(finals):.4f} to {max(finals):.4f}; the "
        f"{scale.constant.name} has {scale.constant.score:.4f}, the oracle {scale.best.score:.4f}."
    )


def satisfaction(found: Finding) -> str:
    """A saturated platform."""
    scale = found.panel.scale
    assert scale is not None
    shares = {row.arm.name: scale.share(row.mean.estimate) for row in found.estimates}
    lowest = min(shares, key=shares.__getitem__)
    rest = [share for name, share in shares.items() if name != lowest]
    return (
        "**Long-term satisfaction is saturated**: at RecSim's own setting the optimum is to show "
        f"the most clickbait, and every memory but {name_of(lowest)} ({shares[lowest]:.2f}) ends "
        f"at {min(rest):.2f} to {max(rest):.2f} of the possible. Nothing can be compared there but "
        "speed."
    )


def store(panel_of: Find) -> str:
    """The store at three capacities."""
    gaps = []
    for capacity in ("10,000", "100,000", "1,000,000"):
        pair = panel_of("ablation", "virtual-taobao", f"capacity {capacity}").against(
            "lser-p", "lser"
        )
        assert pair is not None
        gaps.append(f"{capacity}: {interval(pair.difference, sign=True)}")
    return (
        "**The paper's store is the weak part.** When a memory of 10,000 is full, keeping only the "
        "best of each bucket ruins learning; forgetting by age (LSER-P) costs nothing at any "
        f"capacity (LSER-P minus LSER at {'; '.join(gaps)}). The paper's own runs never filled the "
        'memory. Use `store="fifo"` whenever traffic exceeds the capacity.'
    )


def bits(found: Finding) -> str:
    """What five seeds say of the number of bits."""
    kept = [
        row.arm.name
        for row in found.estimates
        if row.versus and found.adjusted[row.arm.name] <= 0.05
    ]
    said = f"only {listing(kept)} differ" if kept else "none differs"
    return (
        f"**Bits from 2 to 24**: with five seeds **{said}** from 10 bits after Holm's correction. "
        "The five seeds are the lucky ones (below)."
    )


def horizon(panel_of: Find) -> str:
    """What the end of a session does."""
    names = ("session, discount 0.99", "session, discount 0", "continuing, discount 0.99")
    parts = []
    for name in names:
        panel = panel_of("horizon", "virtual-taobao", name).panel
        levels = [float(panel.arm(a).values.mean()) for a in ("lser", "uniform")]  # type: ignore[union-attr]
        parts.append(f"{name}: LSER {number(levels[0])}, uniform {number(levels[1])}")
    return f"**The horizon decides more than the memory.** {'; '.join(parts)}."


def seeds(taobao: Finding) -> str:
    """How lucky the first seeds are, and what pairing buys."""
    lser, uniform = arms(taobao)
    groups = (range(5), range(5, 10), CONFIRMING)
    means = [float(np.mean([lser.scores[s] for s in group])) for group in groups]
    shown = [
        f"{group[0]} to {group[-1]}: {number(mean)}"
        for group, mean in zip(groups, means, strict=True)
    ]
    theirs = [uniform.scores[s] for s in FIRST]
    others = [arm for arm in taobao.panel.arms if arm is not uniform]
    together = [np.corrcoef([arm.scores[s] for s in FIRST], theirs)[0, 1] for arm in others]
    mean = float(np.mean(together))
    return (
        f"**Seeds 0 to 4 are lucky for LSER** (final CTR by seeds: {'; '.join(shown)}), and every "
        "study with five seeds uses them. Studies on VirtualTaobao share runs: `lser` of the "
        "comparison, of the ablation at 1,000,000, `greedy 0.9`, `10 bits` and the continuing "
        "horizon are one run up to their lengths. Pairing by seed buys nothing there: scores of a "
        f"memory and of uniform on equal seeds correlate by {mean:+.2f} on average."
    )


def arms(found: Finding) -> tuple[Arm, Arm]:
    """LSER and uniform."""
    lser, uniform = found.panel.arm("lser"), found.panel.arm("uniform")
    assert lser is not None
    assert uniform is not None
    return lser, uniform


def _area(arm: Arm, until: float) -> dict[int, float]:
    found = {}
    for run in arm.runs:
        at, scores = columns(run)
        kept = at <= until * 1.01
        found[run.seed] = area_under_curve(at[kept], scores[kept])
    return found


def _fell(found: Finding, name: str) -> str:
    measured = found.measured(name)
    assert measured is not None
    assert measured.fallen is not None
    runs = len(measured.arm.runs)
    return f"{round(measured.fallen.estimate * runs)} of {runs}"
