"""The cells of the studies, as experiments."""

from collections.abc import Iterator
from dataclasses import replace

from lser.catalogue import AGENTS, MEMORIES, SIMULATORS
from lser.experiments.experiment import Experiment
from lser.experiments.presets import Scale, earlier_bazaar, lasting, preset
from lser.experiments.studies.known import PAPER_PLATFORMS

PAPER_MEMORIES = ("lser", "per", "der", "aer", "ser", "her", "uniform")
CONTROLS = ("reward-top", "random-code")
PART_SESSIONS: dict[Scale, int] = {"quick": 200, "medium": 10_000, "paper": 90_000}


def comparison(scale: Scale) -> Iterator[Experiment]:
    """Fig. (a) to (d): every memory on every platform, and the controls the paper lacks."""
    for platform in PAPER_PLATFORMS:
        for memory in (*PAPER_MEMORIES, *CONTROLS):
            yield _cell(preset(platform, memory, "ddpg", scale=scale), "comparison", memory)


def epsilon(scale: Scale) -> Iterator[Experiment]:
    """Fig. (e): the share of greedy draws, and the T_r intervention."""
    base = _part(scale)
    for greedy in (0.0, 0.9, 0.99, 1.0):
        yield _cell(
            replace(base, memory=MEMORIES["lser"].params(greedy=greedy)),
            "epsilon",
            f"greedy {greedy:g}",
        )
    yield _cell(replace(base, intervention=0.95), "epsilon", "greedy 0.9, T_r 0.95")


def ablation(scale: Scale) -> Iterator[Experiment]:
    """Fig. (f): store and sampling replaced, at capacities where the store rule is reached."""
    for memory in ("lser", "lser-p", "lser-s"):
        for capacity in (10_000, 100_000, 1_000_000):
            # as long as the comparison: 100,000 transitions must be reached for it to matter
            run = replace(preset("virtual-taobao", memory, scale=scale), capacity=capacity)
            yield _cell(run, "ablation", f"{memory} @ 1e{len(str(capacity)) - 1}")


def hyperplanes(scale: Scale) -> Iterator[Experiment]:
    """The number of hyperplanes, 2 to 24."""
    for bits in (2, 4, 6, 8, 10, 12, 16, 20, 24):
        yield _cell(
            replace(_part(scale), memory=MEMORIES["lser"].params(bits=bits)),
            "hyperplanes",
            f"{bits} bits",
        )


def running_time(scale: Scale) -> Iterator[Experiment]:
    """The table of running times; for clean figures nothing else should run (--workers 1)."""
    steps = {"quick": 500, "medium": 5_000, "paper": 100_000}[scale]
    for platform in PAPER_PLATFORMS:
        for memory in (*PAPER_MEMORIES, *CONTROLS):
            run = preset(platform, memory)
            sessions = max(1, round(steps / run.session_length))
            run = replace(run, sessions=sessions, evaluate_every=sessions, final_sessions=100)
            yield _cell(run, "running-time", memory)


def bazaar_map(scale: Scale) -> Iterator[Experiment]:
    """What LSER gains over uniform as sparsity and state-dependence vary."""
    for sparsity in (0.01, 0.02, 0.05):
        for dependence in (0.0, 0.5, 0.75, 1.0):
            world = SIMULATORS["bazaar"].params(sparsity=sparsity, state_dependence=dependence)
            for memory in ("lser", "uniform", "reward-top"):
                run = earlier_bazaar(preset("bazaar", memory, "ddpg", scale=scale))
                run = replace(run, simulator=world)
                label = f"{memory}, sparsity {sparsity:g}, state dependence {dependence:g}"
                yield _cell(run, "bazaar-map", label)


def horizon(scale: Scale) -> Iterator[Experiment]:
    """Traffic as continuing, or sessions as terminal, then at shorter sight too."""
    for memory in ("lser", "uniform"):
        base = _part(scale, memory)
        yield _cell(base, "horizon", f"{memory}, continuing, discount 0.99")
        for discount in (0.99, 0.9, 0.5, 0.0):
            run = replace(base, horizon="session", agent=AGENTS["ddpg"].params(discount=discount))
            yield _cell(run, "horizon", f"{memory}, session, discount {discount:g}")


def agents(scale: Scale) -> Iterator[Experiment]:
    """DDPG against its successors, the paper's future work."""
    sessions = {"quick": 100, "medium": 4_000, "paper": 90_000}[scale]
    for agent in ("ddpg", "td3", "sac"):
        for memory in ("lser", "uniform"):
            run = lasting(preset("virtual-taobao", memory, agent, scale=scale), sessions)
            yield _cell(run, "agents", f"{agent}, {memory}")


def tuning(scale: Scale) -> Iterator[Experiment]:
    """The noise's scale, with an equal budget for every memory and seeds of its own."""
    sessions = {"quick": 50, "medium": 3_000, "paper": 15_000}[scale]
    for platform in ("virtual-taobao", "bazaar"):
        for memory in PAPER_MEMORIES:
            for noise in (0.1, 0.3, 1.0):
                run = lasting(preset(platform, memory, "ddpg", scale=scale), sessions)
                run = earlier_bazaar(run) if platform == "bazaar" else run
                run = replace(run, agent=AGENTS["ddpg"].params(noise_scale=noise))
                yield _cell(run, "tuning", f"{memory}, noise {noise:g}")


def _part(scale: Scale, memory: str = "lser") -> Experiment:
    return lasting(preset("virtual-taobao", memory, scale=scale), PART_SESSIONS[scale])


def _cell(experiment: Experiment, study: str, label: str) -> Experiment:
    return replace(experiment, study=study, label=label)
