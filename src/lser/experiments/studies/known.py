"""The studies there are: every figure and table of the paper, and the questions it leaves open."""

from dataclasses import replace

from lser.experiments.studies.spec import Axis, StudySpec

_CELLS = "lser.experiments.studies.cells"
_PLANNED = "lser.experiments.studies.planned"
_MEMORY = Axis("memory.name")
TUNING_SEEDS = 1_000_000  # tuning's seeds start here, reported ones below: they never meet
NEW_SEEDS = 100  # planned experiments start here: seeds below were looked at before
NEWER_SEEDS = 120  # for what asks again what seeds from 100 on have shown in part
PARTS_SEEDS, PLATEAUS_SEEDS = 180, 220  # of these two, which nothing else has used

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
            figures=("curves", "runs", "values", "improvement", "times"),
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
            first_seed=TUNING_SEEDS,
            scored=False,
        ),
        StudySpec(
            "paper-regime",
            "The paper's regime",
            "Does the paper's time scale appear with the release's backbone?",
            about="A: the release's DDPG, five updates a step, one user; masked and continuing.",
            cells=f"{_PLANNED}:paper_regime",
            arm_by=(_MEMORY,),
            panel_by=(Axis("horizon", "the paper's regime, {}"),),
            first_seed=NEW_SEEDS,
        ),
        StudySpec(
            "fall",
            "Why runs fall",
            "Which part of LSER as printed makes long runs fall?",
            about="B: LSER's coins, T_r in three readings and the controls, with values recorded.",
            cells=f"{_PLANNED}:fall",
            headline=False,
            compared=("memory", "intervention", "intervention_stops"),
            reference="lser",
            reads="forest",
            first_seed=NEW_SEEDS,
        ),
        StudySpec(
            "cure",
            "As printed and with the cure",
            "What does each memory reach at the paper's length, as printed and with the cure?",
            about="Every memory and control, as printed and with bounds, contrast and the newest.",
            cells=f"{_PLANNED}:cure",
            compared=("memory", "agent"),
            reference="uniform with the cure",
            first_seed=NEW_SEEDS,
        ),
        StudySpec(
            "confirmation",
            "Confirmation",
            "Does LSER's lead at 15,000 sessions hold on new seeds?",
            about="C: LSER, uniform and controls with LSER's bucket sizes, at two levels of noise.",
            cells=f"{_PLANNED}:confirmation",
            arm_by=(_MEMORY,),
            panel_by=(Axis("agent.noise_scale", "new seeds, noise {:g}"),),
            first_seed=NEW_SEEDS,
        ),
        StudySpec(
            "length",
            "At the paper's length",
            "Which memory ends highest after the paper's 90,000 sessions, as printed?",
            about="S: every memory and the controls as printed, on seeds that nothing has used.",
            cells=f"{_PLANNED}:length",
            arm_by=(_MEMORY,),
            panel_by=(Axis("sessions", "newer seeds, {:,} sessions"),),
            first_seed=NEWER_SEEDS,
        ),
        StudySpec(
            "parts",
            "The cure's parts",
            "Which part of the cure keeps long runs of LSER from falling?",
            about="AA: LSER as printed with bounds, the newest or contrast alone, and with all.",
            cells=f"{_PLANNED}:parts",
            headline=False,
            compared=("memory", "agent"),
            reference="lser",
            first_seed=PARTS_SEEDS,
        ),
        StudySpec(
            "plateaus",
            "Off plateaus",
            "Does LSER with the cure end higher with a way off plateaus?",
            about="BB: the cure, with a penalty on pre-activations or exploration in parameters.",
            cells=f"{_PLANNED}:plateaus",
            headline=False,
            compared=("memory", "agent"),
            reference="the cure",
            first_seed=PLATEAUS_SEEDS,
        ),
        StudySpec(
            "locality",
            "What locality is worth",
            "Where does replaying by similarity pay, and where not?",
            about="D: Bazaar by state dependence, sparsity, batch and discount; bits and centring.",
            cells=f"{_PLANNED}:locality",
            headline=False,
            compared=("memory", "agent.value_bound"),
            panel_by=(
                Axis("simulator.sparsity", "sparsity {:g}", "sparsity (CTR of random actions)"),
                Axis("simulator.state_dependence", "state dependence {:g}", "state dependence"),
                Axis("batch_size", "batch {}"),
                Axis("agent.discount", "discount {:g}"),
            ),
            figures=(),
            reads="none",
            first_seed=NEW_SEEDS,
            worlds=3,
        ),
        StudySpec(
            "delayed",
            "Delayed effects",
            "Do delayed effects need an order by return?",
            about="E: long-term satisfaction where it matters, by reward, by return, and bandits.",
            cells=f"{_PLANNED}:delayed",
            compared=("memory", "agent"),
            panel_by=(Axis("simulator.sensitivity", "sensitivity {:g}"),),
            first_seed=NEW_SEEDS,
        ),
        StudySpec(
            "interest",
            "Interests that drift",
            "Can memories be told apart on interest evolution where agents learn?",
            about="F: interest evolution by quality and by watch time.",
            cells=f"{_PLANNED}:interest",
            compared=("memory", "agent"),
            panel_by=(Axis("simulator.reward", "reward: {}"),),
            first_seed=NEW_SEEDS,
        ),
        StudySpec(
            "offers",
            "Offers",
            "Can memories be told apart on RecoGym where agents learn?",
            about="G: RecoGym by expected clicks, with bandits, default and four flips.",
            cells=f"{_PLANNED}:offers",
            compared=("memory", "agent"),
            panel_by=(
                Axis("simulator.number_of_flips", "{} flips"),
                Axis("simulator.random_seed", "world {}"),
            ),
            pooled=True,
            first_seed=NEW_SEEDS,
        ),
        StudySpec(
            "options",
            "LSER's options",
            "Which of LSER's options matter?",
            about="H: LSER's options one at a time.",
            cells=f"{_PLANNED}:options",
            headline=False,
            compared=("memory", "capacity"),
            reference="lser",
            reads="forest",
            first_seed=NEW_SEEDS,
        ),
    )
}
_PLAN = tuple(name for name, spec in STUDIES.items() if spec.cells.startswith(_PLANNED))
GROUPS: dict[str, tuple[str, ...]] = {
    "paper": ("comparison", "running-time", "epsilon", "ablation", "hyperplanes"),
    "all": tuple(name for name in STUDIES if name != "tuning" and name not in _PLAN),
    "plan": _PLAN,
}
RELEASED = ("paper",)  # groups that run in the release's regime
# What is drawn and has no cells here: ``lser compare`` and ``lser demo`` make their own.
_DEMO = StudySpec(
    "demo",
    "Demo",
    "Does this recommender beat a linear bandit, and what does its memory add?",
    compared=("memory", "agent", "updates_per_step"),
    reference="exploring bandit",
    headline=False,
)
_LEAD = StudySpec(
    "lead",
    "The lead as patience and drift grow",
    "Does this recommender keep its lead over a linear bandit?",
    compared=("memory", "agent", "updates_per_step"),
    panel_by=(
        Axis("simulator.patience", "patience {:g}"),
        Axis("simulator.drift", "drift {:g}"),
    ),
    reference="earning bandit",
    headline=False,
    worlds=3,
)
_DRAWN = {
    spec.name: spec
    for spec in (
        StudySpec(
            "compare", "Compared", "Which of these is the better one?", compared=("memory", "agent")
        ),
        _DEMO,
        replace(
            _DEMO,
            name="recommender",
            title="The demo with tastes of bounded length",
            question="Does this recommender beat a linear bandit tuned for the end?",
        ),
        _LEAD,
        replace(_LEAD, name="lead-bounded", title=f"{_LEAD.title}, tastes of bounded length"),
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
