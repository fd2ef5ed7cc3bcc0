"""The studies there are: every figure and table of the paper, and the questions it leaves open."""

from lser.experiments.studies.spec import Axis, StudySpec

_CELLS = "lser.experiments.studies.cells"
_MEMORY = Axis("memory.name")

PAPER_PLATFORMS = ("virtual-taobao", "long-term-satisfaction", "interest-evolution", "recogym")


STUDIES: dict[str, StudySpec] = {
    spec.name: spec
    for spec in (
        StudySpec(
            "comparison",
            "Memories compared",
            "Which memory makes the better recommender?",
            about="Fig. (a) to (d): every memory on every platform, and the controls it lacks.",
            cells=f"{_CELLS}:comparison",
            arm_by=(_MEMORY,),
            figures=("curves", "runs", "improvement", "times"),
        ),
        StudySpec(
            "running-time",
            "Running time",
            "What does each memory cost, and where does a run spend it?",
            about="The table of running times; nothing else should run beside it (--workers 1).",
            cells=f"{_CELLS}:running_time",
            headline=False,
            arm_by=(_MEMORY,),
            figures=("times",),
            scored=False,
        ),
        StudySpec(
            "epsilon",
            "Greedy share",
            "How often should LSER replay by similarity instead of at random?",
            about="Fig. (e): the share of greedy draws, and the T_r intervention.",
            cells=f"{_CELLS}:epsilon",
            headline=False,
            compared=("memory", "intervention"),
            arm_by=(Axis("memory.greedy", "greedy {:g}"), Axis("intervention", "T_r {:g}")),
            reference="greedy 0",
            reads="trend",
        ),
        StudySpec(
            "ablation",
            "Ablation",
            "What is lost when reward order or similarity is taken away?",
            about="Fig. (f): store and sampling replaced, at capacities where the store matters.",
            cells=f"{_CELLS}:ablation",
            headline=False,
            arm_by=(_MEMORY,),
            panel_by=(Axis("capacity", "capacity {:,}"),),
            reference="lser",
            reads="forest",
        ),
        StudySpec(
            "hyperplanes",
            "Hyperplanes",
            "How many bits should a code have?",
            about="The number of hyperplanes, 2 to 24.",
            cells=f"{_CELLS}:hyperplanes",
            headline=False,
            arm_by=(Axis("memory.bits", "{:g} bits", "bits"),),
            reference="10 bits",
            figures=("trend", "runs"),
            reads="trend",
        ),
        StudySpec(
            "bazaar-map",
            "Bazaar map",
            "Where does LSER gain over uniform replay, and where not?",
            about="What LSER gains over uniform as sparsity and state-dependence vary.",
            cells=f"{_CELLS}:bazaar_map",
            arm_by=(_MEMORY,),
            panel_by=(
                Axis("simulator.sparsity", "sparsity {:g}", "sparsity (CTR of random actions)"),
                Axis("simulator.state_dependence", "state dependence {:g}", "state dependence"),
            ),
            figures=("map",),
            reads="map",
        ),
        StudySpec(
            "horizon",
            "Horizon",
            "Does it matter whether the end of a session ends the future?",
            about="Traffic as continuing, or sessions as terminal, then at shorter sight too.",
            cells=f"{_CELLS}:horizon",
            headline=False,
            arm_by=(_MEMORY,),
            panel_by=(Axis("horizon"), Axis("agent.discount", "discount {:g}")),
        ),
        StudySpec(
            "agents",
            "Agents",
            "Does the gain carry over to other learners?",
            about="DDPG against its successors, the paper's future work.",
            cells=f"{_CELLS}:agents",
            headline=False,
            arm_by=(_MEMORY,),
            panel_by=(Axis("agent.name"),),
        ),
        StudySpec(
            "tuning",
            "Tuning",
            "Which noise suits each memory, on seeds that no other study uses?",
            about="The noise's scale, with an equal budget for every memory and seeds of its own.",
            cells=f"{_CELLS}:tuning",
            headline=False,
            arm_by=(_MEMORY,),
            panel_by=(Axis("agent.noise_scale", "noise {:g}"),),
            figures=("runs",),
            reads="none",
            scored=False,
        ),
    )
}
GROUPS: dict[str, tuple[str, ...]] = {
    "paper": tuple(name for name in STUDIES if name != "tuning"),
}
# What is drawn and has no cells here: ``lser demo`` makes its own.
_DRAWN = {
    "demo": StudySpec(
        "demo", "Demo", "Does replaying by similarity pay on this traffic?", arm_by=(_MEMORY,)
    )
}


def spec_for(name: str) -> StudySpec:
    """The spec of a study, or for a name that nobody knows one that compares its labels."""
    known = STUDIES.get(name) or _DRAWN.get(name)
    return known or StudySpec(name, (name or "runs").capitalize(), "How do these runs compare?")


def order_of(name: str) -> int:
    """The place of a study on a page: known ones in their order, the others behind them."""
    names = [*STUDIES, *_DRAWN]
    return names.index(name) if name in names else len(names)
