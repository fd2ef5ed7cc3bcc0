"""What the scripts of Y, Z, AA, BB, AB and AC say of made-up runs: the hash, and why runs fall."""

from dataclasses import replace

import pytest

from lser.experiments import records
from made_up import RESULTS, pack, run


@pytest.fixture
def hashed(fresh, tmp_path):
    """Y or Z read from made-up runs: of LSER at .9, and of the control at a level."""

    def read(letter, level, status="done", share=1.0):
        one = getattr(fresh["control"], letter)
        cells, few = fresh["cells"], {"status": status, "share": share}
        theirs = [run(cell, level, **few) for cell in cells.chosen(letter.lower(), cells.Choice())]
        records.pack([r for r in theirs if "shuffled" in r.label], tmp_path / "theirs.jsonl.gz")
        before = cells.chosen({"Y": "k", "Z": "s"}[letter], cells.Choice())
        ours = {cell.seed: run(cell, 0.9) for cell in before if cell.label == f"lser{one.ending}"}
        for made in ours.values():
            made.final["learning_metric"] = 0.5
        known = {f"lser{one.ending}": ours}
        return replace(one, file=tmp_path / "theirs.jsonl.gz", beside=lambda: known)

    return read


@pytest.mark.parametrize("letter", ["Y", "Z"])
@pytest.mark.parametrize(
    ("level", "said"), [(0.8, "adds something"), (0.9, "adds nothing"), (0.96, "takes something")]
)
def test_the_hash_is_judged_by_its_control(hashed, letter, level, said):
    found = hashed(letter, level)
    assert found.answer() == said
    assert said.split()[0] in found.reading()
    assert "20 seeds" in found.difference()


def test_a_wide_interval_leaves_the_hash_open(hashed):
    found = hashed("Y", 0.9)
    for seed, made in found.standing.runs["shuffled-code"].items():
        made.final["metric"] = 0.9 + 0.1 * (-1) ** seed
    assert found.answer() == "open"
    assert "**is open**" in found.reading()


def test_a_control_that_was_cut_off_is_read_where_it_stood(hashed):
    found = hashed("Z", 0.5, status="stopped", share=0.5)
    assert "45,000 sessions, seeds 120 to 139" in found.reading()
    assert found.answer() == "adds something"


def test_what_y_and_z_are_of_other_letters(scripts):
    cells = scripts["cells"]
    arms = {}
    for one in cells.chosen(("y", "z"), cells.Choice()):
        arms.setdefault((one.study, one.label), []).append(one.seed)
    assert arms.pop(("cure", "shuffled-code with the cure")) == [*range(100, 120)]
    assert arms.pop(("length", "shuffled-code")) == [*range(120, 140)]
    assert set(arms) == {("length", arm) for arm in cells.LATER}
    before = {(one.label, one.seed) for one in cells.chosen("s", cells.Choice())}
    for (_, arm), seeds in arms.items():
        assert seeds == [*range(130, 140)]
        assert not before & {(arm, seed) for seed in seeds}


@pytest.fixture
def apart(fresh, monkeypatch):
    """AA read from made-up runs of its parts, beside S's and K's that are committed."""
    script = fresh["parts"]
    monkeypatch.setattr(fresh["length"], "FILE", RESULTS / "length.jsonl.gz")

    def read(**falls):
        """How far each run of an arm falls, by the word before its last."""
        made = fresh["cells"].chosen(["aa"], fresh["cells"].Choice())
        ends = [0.95 - falls[one.label.split()[-2]] for one in made]
        pack(script, [run(one, end, peak=0.95) for one, end in zip(made, ends, strict=True)])
        return script

    return read


def test_a_part_keeps_runs_from_falling_by_fishers_test(apart):
    script = apart(bounds=0.5, newest=0.0, contrast=0.05)
    assert script.fell("bounds alone") == (12, 0)
    assert script.answer("the newest alone").startswith("keeps")
    assert script.answer("contrast alone").startswith("keeps")
    assert script.answer("bounds alone") == "makes more runs fall"
    assert "keeps runs from falling: the newest alone and contrast alone" in script.said()
    assert script._means() == ""  # contrast holds runs too here


def test_what_follows_for_the_cause_is_told_where_it_does(apart):
    script = apart(bounds=0.0, newest=0.0, contrast=0.5)
    assert script.answer("contrast alone") == "makes more runs fall"
    assert script._means() == ""


def test_parts_are_lser_as_printed_but_for_one(scripts):
    every = scripts["cells"].chosen(["aa"], scripts["cells"].Choice())
    one = {run.label: run for run in every if run.seed == 180}
    printed = next(
        run for run in scripts["cells"].chosen(["s"], scripts["cells"].Choice())
        if run.label == "lser"
    )  # fmt: skip
    bounds, contrast, newest = (one[arm] for arm in sorted(one))
    alike = {"label": "lser", "study": "length", "seed": printed.seed}
    assert replace(bounds, agent=printed.agent, **alike) == printed
    assert bounds.agent == replace(printed.agent, value_bound="auto")
    assert newest.memory == replace(printed.memory, newest=8)
    both = {"greedy_per": "item", "random_from": "memory"}
    assert contrast.memory == replace(printed.memory, **both)
    assert replace(contrast, memory=printed.memory, **alike) == printed


def test_twenty_seeds_pay_for_the_look_before(fresh):
    script, cells = fresh["more_seeds"], fresh["cells"]
    levels = {"lser": 0.8, "reward-top": 0.9, "aer": 0.8, "ser": 0.7, "her": 0.3}
    before = [one for one in cells.chosen("s", cells.Choice()) if one.label in levels]
    pack(fresh["length"], [run(one, levels[one.label]) for one in before])
    more = [one for one in cells.chosen("z", cells.Choice()) if one.label in levels]
    pack(script, [run(one, levels[one.label]) for one in more])
    found = script.secondary()
    assert [one.seeds for one, _ in found.values()] == [20] * 4
    raw = script.standing().gap("lser", "aer", "metric").p
    assert found["aer"][1] == min(1.0, 2 * raw)  # the least of the four: Holm's factor is 1
    assert script.separated() == {
        "reward-top": "below", "aer": "not separated", "ser": "above", "her": "above",
    }  # fmt: skip
    assert (
        "LSER stands **above SER and HER, below reward-top, not separated from AER**"
        in script.reading()
    )


def test_a_way_off_plateaus_earns_its_place_above_the_cure(fresh):
    script, cells = fresh["plateaus"], fresh["cells"]
    ends = {"the cure": 0.85, "penalty 0.001": 0.95, "penalty 0.01": 0.7}
    chosen = cells.chosen(["bb"], cells.Choice())
    made = [run(one, ends.get(one.label, 0.85 + 0.1 * (-1) ** one.seed)) for one in chosen]
    pack(script, made)
    assert script.answers() == {
        "penalty 0.001": "earns its place", "penalty 0.01": "costs", "weight noise 0.1": "open",
    }  # fmt: skip
    assert "**penalty 0.001: earns its place" in script.reading()
    assert "Holm over the 3: penalty 0.001 +0." in script.reading()  # the turned difference


def test_memories_that_waited_are_read_from_five_complete_runs_on(fresh, tmp_path):
    script, cells = fresh["slow"], fresh["cells"]
    chosen = [one for one in cells.chosen(["ab"], cells.Choice()) if one.label == "der"]
    assert [one.seed for one in chosen] == [*range(130, 140)]
    beside = [one for one in cells.chosen(["s"], cells.Choice()) if one.label == "lser"]
    ours = {one.seed: run(one, 0.9) for one in beside}
    left = replace(script.PRINTED, file=tmp_path / "slow.jsonl.gz", beside=lambda: {"lser": ours})
    assert left.reading() == left.block() == ""
    ended = [run(one, 0.6) for one in chosen[:4]]
    cut = [run(one, 0.1, status="stopped", share=0.5) for one in chosen[4:]]
    records.pack([*ended, *cut], left.file)
    assert replace(left).reading() == ""  # four complete runs are too few
    records.pack([run(one, 0.6) for one in chosen[:5]] + cut[1:], left.file)
    found = replace(left)
    assert found.gap.seeds == 5
    assert found.gap.mean.estimate == pytest.approx(0.3, abs=0.03)
    assert "LSER is **above DER**" in found.reading()
    assert found.block().count("\n| ") == 2 + 1


def test_der_with_the_cure_is_what_k_and_t_left(scripts):
    chosen = scripts["cells"].chosen(["ac"], scripts["cells"].Choice())
    assert {(one.study, one.label) for one in chosen} == {("cure", "der with the cure")}
    assert [one.seed for one in chosen] == [*range(100, 110)]
    assert scripts["slow"].CURED.memory + scripts["slow"].CURED.ending == "der with the cure"
