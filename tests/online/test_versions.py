"""New versions on trial: a share of the visitors sees them first, and the evidence decides."""

import numpy as np
import pytest
from shops import quick

from lser.online.arms import Arms, unit
from lser.online.joins import Decision

SETTINGS = quick(arms=(("lser", 1.0),), canary=0.3, canary_pages=400)


def policy(version, sound=True):
    return {"arm": "lser", "version": version, "sound": sound}


@pytest.fixture
def arms():
    """Version 1 is current, version 2 on trial, version 3 waits."""
    made = Arms(SETTINGS)
    for version in (1, 2, 3):
        made.candidate(policy(version))
    return made


def show(arms, rates, pages=600):
    rng = np.random.default_rng(0)
    for number in range(pages):
        user = f"u{number}"
        arm, _, version, cold = arms.policy_for(user)
        page = Decision(str(number), float(number), user, user, arm, version, cold, 10, b"{}")
        page.clicked = frozenset(n for n in "0123456789" if rng.random() < rates[version])
        arms.close(page)


def test_the_first_version_is_for_all_and_the_next_for_some(arms):
    versions = arms.versions["lser"]
    assert (versions.current, versions.canary) == (1, 2)
    assert versions.about[3]["state"] == "candidate"  # one at a time
    users = [f"u{n}" for n in range(2_000)]
    seen = {user: arms.policy_for(user)[2] for user in users}
    assert set(seen.values()) == {1, 2}
    assert np.mean([version == 2 for version in seen.values()]) == pytest.approx(0.3, abs=0.04)
    assert all((seen[u] == 2) == (unit("lser", "canary", u) < 0.3) for u in users)
    assert versions.serving == {0, 1, 2}


def test_a_version_that_lies_below_is_dropped(arms):
    show(arms, {1: 0.4, 2: 0.05})
    [(kind, id, body)] = arms.due()
    assert (kind, id, body["action"], body["version"]) == ("release", "lser-1", "drop", 2)
    arms.release(body)
    versions = arms.versions["lser"]
    assert (versions.current, versions.canary, versions.held) == (1, 0, False)
    assert versions.about[2]["state"] == "rolled back"
    arms.candidate(policy(4))
    assert versions.canary == 4
    assert arms.due() == []  # its trial begins anew


def test_one_that_does_not_is_for_all_after_its_pages(arms):
    show(arms, {1: 0.2, 2: 0.2}, pages=1_000)
    assert arms.due() == []
    show(arms, {1: 0.2, 2: 0.2}, pages=1_000)
    [(_, _, body)] = arms.due()
    assert (body["action"], body["version"]) == ("advance", 2)
    arms.release(body)
    versions = arms.versions["lser"]
    assert (versions.current, versions.canary, versions.stable) == (2, 0, 0)
    assert versions.about[1]["state"] == "retired"


def test_a_promotion_or_rollback_by_hand_ends_the_trial(arms):
    arms.release({"arm": "lser", "version": 3, "action": "promote"})
    versions = arms.versions["lser"]
    assert (versions.current, versions.canary, versions.about[2]["state"]) == (3, 0, "retired")


def test_trials_survive_a_restart(arms):
    show(arms, {1: 0.4, 2: 0.05})
    again = Arms(SETTINGS)
    again.load(arms.state())
    assert again.due() == arms.due()
    assert again.state() == arms.state()


def test_without_a_share_every_sound_version_is_for_all():
    arms = Arms(quick(arms=(("lser", 1.0),)))
    arms.candidate(policy(1))
    arms.candidate(policy(2))
    arms.candidate(policy(3, sound=False))
    assert arms.versions["lser"].current == 2
    with pytest.raises(ValueError, match=r"canary must be in \[0, 1\), got 1.0"):
        quick(canary=1.0)
