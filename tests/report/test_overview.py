"""The first screen: shares of the possible with verdicts, and the paper's claims."""

import dataclasses

import pytest
import synthetic

from lser.experiments.records import Record
from lser.experiments.studies import REWARD, scale_of
from lser.report.claims import claims_table
from lser.report.findings import find_out
from lser.report.overview import Overview, in_one_sentence, overview
from lser.report.sentences import no_control, unlearned
from lser.report.sorting import studies
from lser.report.table import Table

TAOBAO = {"name": "virtual-taobao"}
KNOWN = ("best constant", "best bandit")  # beside the memories


def run(memory: str, seed: int, score: float, **settings: object) -> Record:
    found = synthetic.record("comparison", memory, seed, level=0.5, **settings)
    assert found.final is not None
    found.final.update(metric=score, reward=12 * score)
    return found


def first(runs: list[Record]) -> Overview:
    found = overview(find_out(studies(runs)))
    assert found is not None
    return found


def claims(runs: list[Record]) -> dict[str, str]:
    table = claims_table(find_out(studies(runs)))
    assert isinstance(table, Table)
    return {row[0].partition(" (")[0]: row[1] for row in table.rows}


def test_a_share_is_the_way_from_random_to_best() -> None:
    scale = scale_of({"simulator": TAOBAO}, "ctr")
    assert scale is not None
    assert scale.share(scale.random.score) == 0
    assert scale.share(scale.best.score) == 1
    assert scale.score(scale.share(0.4)) == pytest.approx(0.4)
    clicks = scale_of({"simulator": TAOBAO}, REWARD)
    assert clicks is not None
    assert clicks.share(4.0) == pytest.approx(scale.share(0.4))


def test_other_settings_than_the_known_ones_have_no_scale() -> None:
    world = {"name": "bazaar", "sparsity": 0.02, "state_dependence": 0.5}
    assert scale_of({"simulator": world}, "ctr") is not None
    assert scale_of({"simulator": {**world, "sparsity": 0.03}}, "ctr") is None
    assert scale_of({"simulator": {**world, "drift": 0.3}}, "ctr") is None
    assert scale_of({"simulator": TAOBAO}, "quality") is None
    assert scale_of({"simulator": "bazaar"}, "ctr") is None


@pytest.mark.parametrize(
    ("scores", "reading", "sign"),
    [
        ([0.90, 0.91, 0.92, 0.90], "above", "▲"),
        ([0.10, 0.11, 0.12, 0.10], "below", "▼"),
        ([0.70, 0.31, 0.62, 0.40], "open", ""),
    ],
)
def test_cells_carry_the_verdict(scores: list[float], reading: str, sign: str) -> None:
    runs = [run("lser", seed, score) for seed, score in enumerate(scores)]
    runs += [run("uniform", seed, 0.5 + 0.01 * seed) for seed in range(4)]
    found = first(runs)
    assert found.readings["lser"] == [reading]
    assert found.table.columns == ("where", "LSER", "uniform", *KNOWN)
    assert found.table.rows[0][1].endswith(sign or "0.50")
    assert found.table.marks[0] == ("", reading, "reference", *("" for _ in KNOWN))


def test_holm_goes_over_the_whole_table() -> None:
    lead = (0.10, 0.04, 0.13, 0.06)  # p = .026 alone
    runs = [run("uniform", seed, 0.5) for seed in range(4)]
    runs += [run("lser", seed, 0.5 + more) for seed, more in enumerate(lead)]
    assert first(runs).readings["lser"] == ["above"]
    others = [run(name, seed, 0.5 + 0.1 * (-1) ** seed) for name in ("per", "aer", "her")
              for seed in range(4)]  # fmt: skip
    found = first([*runs, *others])
    assert found.readings["lser"] == ["above?"]
    assert found.tests == 4
    assert in_one_sentence(found) == (
        "LSER ends above uniform replay in 1 of 1 row of the table and below it in 0; after Holm's "
        "correction over its 4 comparisons, in 0 and in 0."
    )


def test_a_trained_objective_of_its_own_has_a_row_of_its_own() -> None:
    world = {"name": "interest-evolution"}
    runs = []
    for name, reward in (("lser", 2.0), ("uniform", 2.3)):
        for seed in range(4):
            one = run(name, seed, -0.5 + 0.1 * seed, simulator=world)
            one.final.update(reward=50 * (reward + 0.01 * seed), length=50.0)
            runs.append(one)
    runs[2].final["reward"] += 0.5
    table = first(runs).table
    assert [row[0].rpartition(", ")[2].rstrip(" †") for row in table.rows] == [
        "quality", "reward per step (trained on)",
    ]  # fmt: skip
    assert [marks[1] for marks in table.marks] == ["open", "below"]
    answers = claims(runs)
    assert answers["LSER is better on interest evolution"] == "does not hold"


def test_a_platform_where_nothing_was_learned_says_so() -> None:
    runs = []
    for seed in range(4):
        one = run("lser", seed, 0.012 + 0.001 * (seed % 2), simulator={"name": "recogym"})
        start = {**synthetic.line(0, 0.0125), "updates": 0}
        runs.append(dataclasses.replace(one, curve=[start, *one.curve]))
        runs.append(dataclasses.replace(run("uniform", seed, 0.012, simulator={"name": "recogym"}),
                                        curve=[start, *one.curve]))  # fmt: skip
    found = find_out(studies(runs))
    assert unlearned(found[0].panels[0]).startswith("no arm ends clearly above its own untrained")
    assert first(runs).table.rows[0][0].endswith("†")
    for one in runs:
        one.final["metric"] += 0.1
    assert unlearned(find_out(studies(runs))[0].panels[0]) == ""


def test_buckets_smaller_than_a_batch_are_no_control() -> None:
    runs = [run("random-code", seed, 0.5) for seed in range(2)]
    for one in runs:
        one.final["memory"] = {"bucket_size_median": 112.0}
    panel = find_out(studies(runs))[0].panels[0]
    assert "no control here: its buckets hold 112" in no_control(panel)
    runs[0].final["memory"] = {"bucket_size_median": 200.0}
    assert no_control(find_out(studies(runs))[0].panels[0]) == ""


def test_a_claim_needs_an_interval_to_hold_or_to_fail() -> None:
    rivals = ("per", "der", "aer", "ser", "her", "uniform")
    runs = [run("lser", seed, 0.9 + 0.01 * seed) for seed in range(4)]
    runs += [run(name, seed, 0.5 + 0.01 * (seed % 2)) for name in rivals for seed in range(4)]
    assert claims(runs)["LSER ends above every other memory on VirtualTaobao"] == "holds"
    runs[-1].final["metric"] = 1.9  # one run of uniform
    assert claims(runs)["LSER ends above every other memory on VirtualTaobao"] == "open"


@pytest.mark.parametrize(
    ("ours", "theirs", "said"), [(6, 0, "holds"), (2, 0, "open"), (0, 6, "does not hold")]
)
def test_falls_are_counted_against_those_of_uniform(ours: int, theirs: int, said: str) -> None:
    runs = []
    for name, falls in (("lser", ours), ("uniform", theirs)):
        for seed in range(6):
            one = run(name, seed, 0.9)
            one.curve[-2]["metric"] = one.curve[-1]["metric"] = 0.9
            if seed < falls:
                one.curve[-1]["metric"] = one.final["metric"] = 0.2
            runs.append(one)
    assert claims(runs)["After its peak LSER fluctuates"] == said


@pytest.mark.parametrize(
    ("factor", "said"), [(0.5, "holds"), (1.0, "open"), (2.0, "does not hold")]
)
def test_the_cost_is_compared_over_platforms(factor: float, said: str) -> None:
    runs = []
    for place, platform in enumerate(("virtual-taobao", "recogym", "interest-evolution")):
        for name, cost in (("lser", factor), ("per", 1.1), ("uniform", 1.0 + 0.1 * (place - 1))):
            one = synthetic.record("running-time", name, 0, level=0.5, simulator={"name": platform})
            one.final["times"]["replay"] = cost * one.final["updates"]
            runs.append(one)
    assert claims(runs)["LSER costs less time than the other memories"] == said
    for one in runs:  # clocks too coarse, or nobody else of the paper: there is nothing to compare
        one.final["times"]["replay"] *= one.memory == "lser"
    assert claims_table(find_out(studies(runs))) is None


def test_an_intervention_is_judged_by_the_runs_it_touched() -> None:
    runs = []
    for seed in range(6):
        memory = {"name": "lser", "greedy": 0.9}
        for stop in (None, 0.95):
            one = synthetic.record(
                "epsilon", "x", seed, level=0.6, memory=memory, intervention=stop
            )
            touched = seed < 3
            one.curve[-1]["metric"] = 0.97 if touched else 0.6
            one.final["metric"] = 0.8 - (0.2 + 0.01 * seed if touched and stop else 0)
            runs.append(one)
    table = claims_table(find_out(studies(runs)))
    assert table is not None
    row = next(row for row in table.rows if row[0].startswith("Stopping"))
    assert row[1] == "does not hold"
    assert row[2].startswith("it touched 3 of 6 runs; in those −0.210")


def test_a_claim_whose_study_was_not_run_is_not_listed() -> None:
    assert claims_table(find_out(studies(synthetic.demo(2)))) is None


def test_agents_without_a_memory_stand_beside_and_are_not_tested() -> None:
    runs = [run("uniform", seed, 0.5 + 0.01 * seed) for seed in range(4)]
    runs += [run("lser", seed, 0.6 + 0.02 * seed) for seed in range(4)]
    before = first(runs)
    runs += [run("ridge-thompson", seed, 0.3) for seed in range(4)]  # known ones are better
    assert first(runs).table.rows[0][-1] == before.table.rows[0][-1]
    runs += [run("ridge", seed, 0.97) for seed in range(4)]
    found = first(runs)
    assert found.tests == before.tests == 1
    assert found.table.columns[-1] == "best bandit"
    assert found.table.rows[0][-1] == "0.97"  # no sign
    assert found.table.marks[0][-1] == ""


def test_a_variant_of_one_row_has_no_column() -> None:
    runs = [run(memory, seed, 0.5) for memory in ("uniform", "lser", "odd") for seed in range(3)]
    assert "odd" in first(runs).table.columns  # the only row is its row
    lone = [run("uniform", seed, 0.5, sessions=600) for seed in range(3)]
    lone += [run("lser", seed, 0.6, sessions=600) for seed in range(3)]
    assert "odd" not in first(runs + lone).table.columns


def test_arms_named_like_their_reference_are_a_row_of_memories() -> None:
    arms = ("lser as printed", "lser with the cure", "uniform with the cure")
    runs = [synthetic.record("cure", arm, seed, level=0.5) for arm in arms for seed in range(3)]
    table = first(runs).table
    assert table.columns[:3] == ("where", "LSER", "uniform")
    [row] = table.rows
    assert ", with the cure, " in row[0]


def test_a_panel_whose_worlds_come_with_its_seeds_has_their_mean_scale() -> None:
    def world(seed: int) -> dict[str, object]:
        return {"name": "bazaar", "state_dependence": 0.75, "sparsity": 0.02, "world_seed": seed}

    runs = [
        synthetic.record("lead", "LSER recommender", seed, level=0.3, simulator=world(seed % 3))
        for seed in range(3)
    ]
    [panel] = studies(runs)[0].panels
    scales = [scale_of({"simulator": world(seed)}, "ctr") for seed in range(3)]
    assert panel.scale is not None
    best = [scale.best.score for scale in scales if scale is not None]
    assert panel.scale.best.score == pytest.approx(sum(best) / 3)
    assert len(set(best)) == 3
    elsewhere = synthetic.record("lead", "LSER recommender", 3, level=0.3, simulator=world(7))
    [panel] = studies([*runs, elsewhere])[0].panels
    assert panel.scale is None


def offer(memory: str, world: int, seed: int, share: float, drawn: float = 0.0) -> Record:
    """A run of RecoGym in one of its worlds, with a share of the possible in what it is paid."""
    shop = {"name": "recogym", "random_seed": world, "reward_scale": 50.0}
    scale = scale_of({"simulator": shop}, REWARD)
    assert scale is not None
    found = synthetic.record("offers", memory, seed, level=0.5, simulator=shop, sessions=300)
    assert found.final is not None
    paid = scale.score(share)
    found.final.update(metric=paid / 50 + drawn, reward=paid * found.final["length"])
    return found


def test_worlds_of_one_platform_are_one_row_seed_by_seed() -> None:
    levels = {"lser": (0.6, 0.8), "uniform": (0.4, 0.5)}
    runs = [
        offer(memory, world, seed, share + 0.01 * (seed - 101), drawn=1e-4 * (seed - 101))
        for memory, shares in levels.items()
        for world, share in zip((42, 43), shares, strict=True)
        for seed in (100, 101, 102)
    ]
    runs += [offer("per", 42, seed, 0.9) for seed in (100, 101, 102)]  # in one world alone
    table = first(runs).table
    assert table.columns[:3] == ("where", "LSER", "uniform")
    assert "PER" not in table.columns
    metric, reward = table.rows
    assert metric[0].startswith("RecoGym, 300 sessions, mean of 2 worlds, CTR")
    assert reward[0].startswith("RecoGym, 300 sessions, mean of 2 worlds, reward per step")
    assert [cell.split()[0] for cell in reward[1:3]] == ["0.70", "0.45"]


@pytest.mark.parametrize(("there", "said"), [(0.9, "open"), (0.2, "does not hold")])
def test_a_claim_falls_where_agents_learn_and_lser_is_below(there: float, said: str) -> None:
    level = [("comparison", "lser", 0.5), ("comparison", "uniform", 0.5)]
    cells = [*level, ("delayed", "lser", there), ("delayed", "uniform", 0.8)]
    shop = {"name": "long-term-satisfaction"}
    runs = [
        synthetic.record(study, memory, seed, level=height, simulator=shop)
        for study, memory, height in cells
        for seed in range(6)
    ]
    assert claims(runs)["LSER is better on long-term satisfaction"] == said


def test_a_claim_names_the_mean_over_worlds_once() -> None:
    runs = [
        offer(memory, world, seed, share + 0.001 * seed * (memory == "lser"))
        for memory, share in (("lser", 0.5), ("uniform", 0.4))
        for world in (42, 43)
        for seed in (1, 2, 3)
    ]
    shop = {"name": "recogym"}
    runs += [
        run(memory, seed, 0.0131 + 0.0001 * seed, simulator=shop)
        for memory in ("lser", "uniform")
        for seed in range(3)
    ]
    table = claims_table(find_out(studies(runs)))
    assert table is not None
    [words] = [row[2] for row in table.rows if "RecoGym" in row[0]]
    assert words.count("300 sessions") == 1
    assert "mean of 2 worlds, reward per step as a share of the possible: +0.102" in words


def test_a_page_has_room_for_the_memories_of_most_rows_and_names_the_others() -> None:
    everywhere = ("lser", "uniform", "per", "der", "aer", "ser", "her", "reward-top")
    runs = [
        run(memory, seed, 0.5 + 0.01 * seed, simulator=world)
        for memory in everywhere
        for world in (TAOBAO, {"name": "recogym"})
        for seed in range(3)
    ]
    runs += [
        run(memory, seed, 0.5, simulator=TAOBAO)
        for memory in ("random-code", "shuffled-code", "her-balanced")
        for seed in range(3)
    ]
    table = first(runs).table
    shown = [name for name in table.columns[1:] if name not in KNOWN]
    assert len(shown) == 9
    assert shown[:2] == ["LSER", "uniform"]
    assert {"PER", "DER", "AER", "SER", "HER", "reward-top"} <= set(shown)
    assert first(runs).tests == 15  # what has no column is not in its family
    [left] = [note for note in table.notes if note.startswith("Without a column")]
    assert sum(name in left for name in ("random-code", "shuffled-code", "HER, balanced")) == 2
