"""The cells of the planned experiments of `results/plan.md`, by their letters."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

from lser.catalogue import AGENTS, SIMULATORS
from lser.experiments.experiment import Experiment
from lser.experiments.presets import (
    Scale,
    earlier_bazaar,
    lasting,
    learnable,
    preset,
    released,
    steady,
)
from lser.experiments.studies.cells import CONTROLS, PAPER_MEMORIES

MATCHED = ("reward-top", "shuffled-code")


def paper_regime(scale: Scale) -> Iterator[Experiment]:
    """A: the release's backbone, sessions as terminal first, then continuing."""
    sessions = {"quick": 60, "medium": 10_000, "paper": 90_000}[scale]
    for horizon in ("session", "continuing"):
        for memory in ("uniform", "lser", "reward-top"):
            run = released(lasting(preset("virtual-taobao", memory), sessions))
            every = 1_000 if scale != "quick" else 20
            run = replace(run, horizon=horizon, evaluate_every=every)
            yield _cell(run, "paper-regime", memory)


def fall(scale: Scale) -> Iterator[Experiment]:
    """B: LSER as printed, each of its options, T_r in three readings, and the controls."""
    base = _taobao("lser", {"quick": 60, "medium": 15_000, "paper": 60_000}[scale])
    yield _cell(base, "fall", "lser")
    for name, knobs in (
        ("a coin per item", {"greedy_per": "item"}),
        ("random from the memory", {"random_from": "memory"}),
        ("greedy 0.5", {"greedy": 0.5}),
    ):
        yield _cell(_with_memory(base, **knobs), "fall", name)
    for stops in ("noise", "noise and greedy", "learning"):
        run = replace(base, intervention=0.95, intervention_stops=stops)
        yield _cell(run, "fall", f"T_r stops {stops}")
    for memory in ("reward-top", "uniform"):
        yield _cell(_taobao(memory, base.sessions), "fall", memory)


def cure(scale: Scale) -> Iterator[Experiment]:
    """Every memory and control as printed, and with the cure, at the paper's length."""
    sessions = {"quick": 60, "medium": 15_000, "paper": 90_000}[scale]
    for memory in (*PAPER_MEMORIES, *CONTROLS, "shuffled-code"):
        run = replace(_taobao(memory, sessions), evaluate_every=max(1, sessions // 60))
        yield _cell(run, "cure", f"{memory} as printed")
        yield _cell(steady(run), "cure", f"{memory} with the cure")


def length(scale: Scale) -> Iterator[Experiment]:
    """S: every memory and the controls as printed, at the paper's length."""
    sessions = {"quick": 60, "medium": 15_000, "paper": 90_000}[scale]
    for memory in (*PAPER_MEMORIES, *MATCHED):
        run = replace(_taobao(memory, sessions), evaluate_every=max(1, sessions // 60))
        yield _cell(run, "length", memory)


def parts(scale: Scale) -> Iterator[Experiment]:
    """AA: LSER as printed, with each part of the cure alone, and with all of them."""
    sessions = {"quick": 60, "medium": 15_000, "paper": 90_000}[scale]
    run = replace(_taobao("lser", sessions), evaluate_every=max(1, sessions // 60))
    cured = steady(run)
    contrast = {name: getattr(cured.memory, name) for name in ("greedy_per", "random_from")}
    yield _cell(run, "parts", "lser")
    yield _cell(replace(run, agent=cured.agent), "parts", "bounds alone")
    yield _cell(_with_memory(run, newest=cured.memory.newest), "parts", "the newest alone")
    yield _cell(_with_memory(run, **contrast), "parts", "contrast alone")
    yield _cell(cured, "parts", "the whole cure")


def plateaus(scale: Scale) -> Iterator[Experiment]:
    """BB: LSER with the cure, and with a way off plateaus beside it."""
    sessions = {"quick": 60, "medium": 15_000, "paper": 15_000}[scale]
    cured = steady(_taobao("lser", sessions))
    yield _cell(cured, "plateaus", "the cure")
    for penalty in (0.001, 0.01):
        run = _with_agent(cured, preactivation_penalty=penalty)
        yield _cell(run, "plateaus", f"penalty {penalty:g}")
    yield _cell(_with_agent(cured, weight_noise=0.1), "plateaus", "weight noise 0.1")


def confirmation(scale: Scale) -> Iterator[Experiment]:
    """C: LSER against uniform and the matched controls on new seeds, at two levels of noise."""
    sessions = {"quick": 60, "medium": 15_000, "paper": 15_000}[scale]
    for noise in (0.1, 0.3):
        for memory in ("lser", "uniform", *MATCHED):
            run = _with_agent(_taobao(memory, sessions), noise_scale=noise)
            yield _cell(run, "confirmation", memory)


def locality(scale: Scale) -> Iterator[Experiment]:
    """D: what locality is worth on Bazaar, and where: the whole map, or where it should pay most.

    At the paper's scale runs are longer and only the cells of the primary test are left: batch 32,
    discount 0, sparsity .005.
    """
    sessions = {"quick": 60, "medium": 2_000, "paper": 6_000}[scale]
    long = scale == "paper"
    dials = product(
        *((0.0, 0.5, 1.0), (0.005,) if long else (0.005, 0.02)),
        *((32,) if long else (32, 128), (0.0,) if long else (0.0, 0.99)),
    )
    for dependence, sparsity, batch, discount in dials:
        dial = {"state_dependence": dependence, "sparsity": sparsity}
        world = SIMULATORS["bazaar"].params(**dial)
        for label, memory, knobs in _LOCALITY_ARMS:
            run = lasting(earlier_bazaar(preset("bazaar", memory, "ddpg")), sessions)
            run = _with_agent(_with_memory(run, **knobs), discount=discount)
            run = replace(run, simulator=world, batch_size=batch, final_sessions=500)
            run = replace(run, evaluate_every=max(1, min(500, sessions // 3)))
            yield _cell(steady(run) if label.endswith("cure") else run, "locality", label)


_CENTRED = {"bits": 10, "features": "centred", "warmup": 1_000}
_LOCALITY_ARMS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("uniform", "uniform", {}),
    ("reward-top", "reward-top", {}),
    ("shuffled-code", "shuffled-code", _CENTRED),
    ("lser", "lser", _CENTRED),
    ("lser 6 bits raw", "lser", {"bits": 6}),
    ("lser 10 bits raw", "lser", {"bits": 10}),
    ("lser 14 bits raw", "lser", {"bits": 14}),
    ("uniform with the cure", "uniform", {}),
    ("reward-top with the cure", "reward-top", {"greedy": 0.5}),
    ("lser with the cure", "lser", {**_CENTRED, "greedy": 0.5}),
    ("shuffled-code with the cure", "shuffled-code", {**_CENTRED, "greedy": 0.5}),
)


def delayed(scale: Scale) -> Iterator[Experiment]:
    """E: long-term satisfaction where the long term matters, by reward and by return."""
    for memory in ("uniform", "lser", "reward-top", "per", "aer"):
        yield _cell(_short(learnable("long-term-satisfaction", memory), scale), "delayed", memory)
    by_return = _with_memory(learnable("long-term-satisfaction", "lser"), order="return")
    yield _cell(_short(by_return, scale), "delayed", "lser by return")
    plain = _short(learnable("long-term-satisfaction", "uniform"), scale)
    yield _cell(_with_agent(plain, discount=0.0), "delayed", "neural-bandit")
    for bandit in ("ridge", "ridge-thompson"):
        yield _cell(replace(plain, agent=AGENTS[bandit].params()), "delayed", bandit)


def interest(scale: Scale) -> Iterator[Experiment]:
    """F: interest evolution by quality and by watch time."""
    for objective in ("quality", "watch time"):
        for memory in ("uniform", "lser", "reward-top", "her-balanced", "per", "aer"):
            run = learnable("interest-evolution", memory, objective=objective)
            yield _cell(_short(run, scale), "interest", memory)
        run = learnable("interest-evolution", "lser", objective=objective)
        run = _short(_with_memory(run, store="reward"), scale)
        yield _cell(run, "interest", "lser that keeps the best")


def offers(scale: Scale) -> Iterator[Experiment]:
    """G: RecoGym by expected clicks, all memories and bandits, default and four flips."""
    worlds = range(42, 47) if scale == "paper" else range(42, 43)
    for flips in (0, 4):
        for seed in worlds:
            for memory in (*PAPER_MEMORIES, *MATCHED):
                run = learnable("recogym", memory)
                yield _cell(_in_world(_short(run, scale), seed, flips), "offers", memory)
            for bandit in ("ridge", "ridge-thompson"):
                run = replace(learnable("recogym", "uniform"), agent=AGENTS[bandit].params())
                yield _cell(_in_world(_short(run, scale), seed, flips), "offers", bandit)


def options(scale: Scale) -> Iterator[Experiment]:
    """H: LSER's options, one at a time."""
    base = _taobao("lser", {"quick": 60, "medium": 15_000, "paper": 15_000}[scale])
    yield _cell(base, "options", "lser")
    for knobs in (
        *({"fill": "uniform"}, {"random_from": "memory"}, {"greedy_per": "item"}),
        *({"features": "centred"}, {"features": "standardised"}, {"order": "return"}),
        *({"unseen": "evict"}, {"newest": 8}),
    ):
        [(name, value)] = knobs.items()
        yield _cell(_with_memory(base, **knobs), "options", f"{name} {value}")
    for store in ("reward", "fifo"):
        for capacity in (10_000, 100_000):
            run = replace(_with_memory(base, store=store), capacity=capacity)
            yield _cell(run, "options", f"store {store} of {capacity // 1_000}k")


def _taobao(memory: str, sessions: int) -> Experiment:
    return lasting(preset("virtual-taobao", memory), sessions)


def _short(experiment: Experiment, scale: Scale) -> Experiment:
    return lasting(experiment, 3) if scale == "quick" else experiment


def _in_world(experiment: Experiment, seed: int, flips: int) -> Experiment:
    world = replace(experiment.simulator, random_seed=seed, number_of_flips=flips)
    return replace(experiment, simulator=world)


def _with_memory(experiment: Experiment, **knobs: Any) -> Experiment:
    return replace(experiment, memory=replace(experiment.memory, **knobs))


def _with_agent(experiment: Experiment, **knobs: Any) -> Experiment:
    return replace(experiment, agent=replace(experiment.agent, **knobs))


def _cell(experiment: Experiment, study: str, label: str) -> Experiment:
    return replace(experiment, study=study, label=label)
