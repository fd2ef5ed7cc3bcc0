"""What keeps a policy from going live."""

import numpy as np
import pytest
from shops import catalogue

from lser.online.folder_store import FolderShelf
from lser.online.items import Items
from lser.online.nearest import Nearest
from lser.online.policies import Directed, PopularPolicy, TowerPolicy, load_policy, save_policy
from lser.online.shadow import inspect

WIDTH, DIM = 3, 4
RNG = np.random.default_rng(0)
SEEN = RNG.standard_normal((20, WIDTH)).astype(np.float32)


@pytest.fixture
def nearest():
    items = Items(DIM)
    items.put([f"{n}" for n in range(60)], catalogue())
    return Nearest(items)


def tower(linear):
    return TowerPolicy({"linear": np.asarray(linear, np.float32)})


SOUND = RNG.standard_normal((WIDTH + 1, DIM)).astype(np.float32)


class Saturated(Directed):
    """An agent whose every component is at a bound."""

    kind = "agent"

    def direction(self, observation):
        return np.sign(observation.sum()) * np.ones(DIM, np.float32)


def test_a_sound_policy_passes_with_its_distance_and_overlap(nearest):
    same = inspect(tower(SOUND), tower(SOUND), SEEN, nearest, 5)
    assert same.problems == []
    assert same.distance == pytest.approx(0, abs=1e-3)
    assert same.overlap == 1.0
    turned = inspect(tower(-SOUND), tower(SOUND), SEEN, nearest, 5)
    assert turned.distance == pytest.approx(2.0, abs=1e-3)  # right angles
    assert turned.overlap < 0.2
    assert inspect(tower(SOUND), None, SEEN, nearest, 5).problems == []


@pytest.mark.parametrize(
    ("candidate", "values", "problem"),
    [
        (tower(SOUND * np.nan), None, "not finite"),
        (tower(SOUND * 0), None, "directions are zero"),
        (tower([[0] * DIM] * WIDTH + [[1] * DIM]), None, "every visitor gets the same"),
        (Saturated(), None, "100% of the action's components are at a bound"),
        (tower(SOUND), (500.0, 100.0), "mean value 500 is outside its bound 100"),
        (tower(SOUND), (float("nan"), 100.0), "outside its bound"),
    ],
)
def test_an_unsound_policy_is_found_out(nearest, candidate, values, problem):
    found = inspect(candidate, tower(SOUND), SEEN, nearest, 5, values=values)
    assert any(problem in text for text in found.problems), found.problems


def test_a_policy_without_a_direction_has_nothing_to_fail(nearest):
    assert inspect(PopularPolicy(np.ones(60, np.float32)), None, SEEN, nearest, 5).problems == []


def test_a_policy_file_comes_back_and_a_torn_one_is_refused(tmp_path):
    save_policy(
        FolderShelf(tmp_path), "lser", 3, {"kind": "tower", "parameters": {"linear": SOUND}}
    )
    policy = load_policy(FolderShelf(tmp_path), "lser", 3)
    np.testing.assert_array_equal(policy.direction(SEEN[0]), tower(SOUND).direction(SEEN[0]))
    [file] = tmp_path.rglob("*.lser")
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(ValueError, match="truncated or corrupted"):
        load_policy(FolderShelf(tmp_path), "lser", 3)
    with pytest.raises(OSError):
        load_policy(FolderShelf(tmp_path), "lser", 4)
