import csv
import tracemalloc

import numpy as np
import orjson
import pytest

from lser.online import cells as cells_module
from lser.online import nearest as nearest_module
from lser.online.cells import Cells
from lser.online.item_files import read_columns, read_items
from lser.online.items import Items, packed, put_body, remove_body, unpacked
from lser.online.nearest import Nearest


def filled(count=50, dim=4, seed=0):
    vectors = np.random.default_rng(seed).standard_normal((count, dim)).astype(np.float32)
    items = Items(dim)
    items.put([f"i{n}" for n in range(count)], vectors)
    return items, vectors


def test_rows_stay_with_their_items_and_are_never_reused():
    items, vectors = filled(200)
    items.remove(["i3", "nobody"])
    assert items.put(["new"], vectors[:1]) == [200]
    assert items.put(["i3"], vectors[:1]) == [201]  # back again, in a row of its own
    assert len(items) == 201
    assert items.rows == 202
    np.testing.assert_array_equal(items.vectors[5], vectors[5])


def test_changes_travel_through_the_log_unchanged():
    items, vectors = filled()
    twin = Items(4)
    twin.apply(orjson.loads(put_body(items.ids, vectors, [{"kind": n % 2} for n in range(50)])))
    twin.apply(orjson.loads(remove_body(["i7"])))
    np.testing.assert_array_equal(twin.vectors, vectors)
    assert "i7" not in twin.row
    assert twin.attributes(9) == {"kind": 1}
    np.testing.assert_array_equal(unpacked(packed(vectors)), vectors.ravel())


def test_filters_lists_and_exclusions_meet():
    items, vectors = filled(6)
    items.put(items.ids, vectors, [{"colour": c} for c in ("red", "red", "blue", "blue", "g", "g")])

    def names(**limits):
        return [items.ids[row] for row in np.flatnonzero(items.eligible(**limits))]

    assert items.eligible() is None
    assert names(where={"colour": "red"}) == ["i0", "i1"]
    assert names(where={"colour": ["red", "blue"]}, exclude=["i1", "nobody"]) == ["i0", "i2", "i3"]
    assert names(among=["i5", "i2", "nobody"], where={"colour": "blue"}) == ["i2"]
    assert names(where={"size": 3}) == []


@pytest.mark.parametrize("large", [False, True])
def test_the_nearest_are_those_of_a_full_sort_under_changes(large, monkeypatch):
    if large:
        monkeypatch.setattr(nearest_module, "SCAN_UP_TO", 100)
        monkeypatch.setattr(nearest_module, "PROBES", 10_000)  # every cell: exact
    rng = np.random.default_rng(1)
    items, _ = filled(600)
    nearest = Nearest(items)
    if large:
        assert nearest.due
        nearest.rebuild()
        assert not nearest.due
    for turn in range(60):
        if turn % 3 == 1:
            changed = [f"i{n}" for n in rng.integers(900, size=3)]
            changed = list(dict.fromkeys(changed))
            nearest.note(items.put(changed, rng.standard_normal((len(changed), 4))))
        if turn % 3 == 2:
            nearest.note(items.remove([f"i{n}" for n in rng.integers(900, size=5)]))
        if turn == 40 and large:
            nearest.rebuild()
        direction = rng.standard_normal(4).astype(np.float32)
        mask = rng.random(items.rows) < 0.5 if turn % 2 else None
        found = nearest.search(direction, 7, mask)
        allowed = items.live if mask is None else items.live & mask
        scores = np.where(allowed, items.vectors @ direction, -np.inf)
        expected = np.sort(scores)[::-1][:7]
        np.testing.assert_allclose(found.scores, expected, rtol=1e-5)
        assert allowed[found.rows].all()


@pytest.mark.parametrize("again", [False, True])
def test_what_changes_while_cells_are_built_is_not_lost(again, monkeypatch):
    monkeypatch.setattr(nearest_module, "SCAN_UP_TO", 100)
    items, vectors = filled(600)
    nearest = Nearest(items)
    if again:
        nearest.rebuild()
        nearest.note(items.remove(["i1"]))
    direction = vectors[0] * 10
    seen = []

    def build(*given, **options):
        nearest.note(items.remove(["i0"]))
        nearest.note(items.put(["new"], direction[None]))
        seen.append(nearest.search(direction, 5).rows)  # by the old cells, or by none
        return Cells(*given, **options)

    monkeypatch.setattr(nearest_module, "Cells", build)
    nearest.rebuild()
    seen.append(nearest.search(direction, 5).rows)
    for rows in seen:
        assert rows[0] == items.row["new"]
        assert items.live[rows].all()


@pytest.mark.parametrize("dim", [1, 5, 8])
def test_cells_that_are_all_looked_into_hold_the_nearest(dim):
    rng = np.random.default_rng(dim)
    vectors = rng.standard_normal((900, dim)).astype(np.float32)
    rows = np.flatnonzero(rng.random(900) < 0.7)
    cells = Cells(vectors[rows], rows, probes=900)
    for direction in rng.standard_normal((20, dim)).astype(np.float32):
        found = cells.search(direction, 30, vectors)
        exact = vectors[rows] @ direction
        np.testing.assert_allclose(found.scores, vectors[found.rows] @ direction, rtol=1e-4)
        assert (np.diff(found.scores) <= 0).all()
        assert len(set(found.rows.tolist())) == 30
        close = np.sort(exact)[-30] - 0.02 * np.abs(direction).sum()  # numbers have one byte
        assert np.isin(found.rows, rows[exact >= close]).all()
    assert len(cells.search(direction, 2_000, vectors).rows) == len(rows)


def test_few_cells_hold_most_of_the_nearest_where_items_lie_in_clusters():
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((100, 16))[rng.integers(100, size=10_000)]
    vectors = (vectors + 0.3 * rng.standard_normal(vectors.shape)).astype(np.float32)
    cells = Cells(vectors, np.arange(10_000), probes=16)
    hits = []
    for direction in vectors[:50]:
        exact = np.argsort(-(vectors @ direction))[:50]
        hits.append(np.isin(cells.search(direction, 50, vectors).rows, exact).mean())
    assert np.mean(hits) > 0.9


def test_building_cells_holds_few_products_at_a_time(monkeypatch):
    monkeypatch.setattr(cells_module, "_AT_ONCE", 1 << 16)
    vectors = np.random.default_rng(0).standard_normal((20_000, 4)).astype(np.float32)
    tracemalloc.start()
    try:
        Cells(vectors, np.arange(20_000), probes=4)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5e6  # all products of items and centres would be 11 MB


def test_cells_of_vectors_without_numbers_to_go_by_hold_them_all():
    cells = Cells(np.zeros((50, 3), np.float32), np.arange(50), probes=7)
    assert len(cells.search(np.ones(3, np.float32), 50, np.zeros((50, 3), np.float32)).rows) == 50


def test_fewer_are_found_where_there_are_fewer():
    items, _ = filled(5)
    found = Nearest(items).search(np.ones(4, np.float32), 10, np.array([1, 0, 1, 0, 0], bool))
    assert sorted(found.rows.tolist()) == [0, 2]


TABLES = {
    "array": lambda v: v,
    "pair": lambda v: ([f"a{n}" for n in range(3)], v),
    "mapping": lambda v: {f"a{n}": v[n] for n in range(3)},
}


@pytest.mark.parametrize("kind", TABLES)
def test_items_come_from_arrays_pairs_and_mappings(kind):
    vectors = np.arange(6, dtype=np.float32).reshape(3, 2)
    table = read_items(TABLES[kind](vectors))
    np.testing.assert_array_equal(table.vectors, vectors)
    assert len(table.ids) == 3


def test_items_come_from_files_and_data_frames(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"sku": ["a", "b"], "v0": [1.0, 2.0], "v1": [3.0, 4.0], "colour": ["red", "blue"]}
    )
    frame.to_csv(tmp_path / "items.csv", index=False)
    sources = [frame, tmp_path / "items.csv", str(tmp_path / "items.csv")]
    if pytest.importorskip("pyarrow"):
        frame.to_parquet(tmp_path / "items.parquet")
        sources.append(tmp_path / "items.parquet")
    for source in sources:
        table = read_items(source)
        assert table.ids == ["a", "b"]
        np.testing.assert_array_equal(table.vectors, [[1, 3], [2, 4]])
        assert table.attributes == [{"colour": "red"}, {"colour": "blue"}]


def test_a_vector_may_be_one_column(tmp_path):
    with (tmp_path / "items.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["id", "vector"], ["a", "[1, 2]"], ["b", "3 4"]])
    np.testing.assert_array_equal(read_items(tmp_path / "items.csv").vectors, [[1, 2], [3, 4]])


def test_ids_alone_have_no_vectors():
    assert read_items(["a", "b"]).vectors is None


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ((["a", "a"], [[1.0], [2.0]]), "'a' appears twice"),
        ((["a", "b"], [[1.0], [np.nan]]), r"vectors\[1\] holds a number that is not finite"),
        ((["a", "b"], [[1.0], [1.0, 2.0]]), "one length"),
        ((["a", ""], [[1.0], [1.0]]), "item id must be a text of 1 to 256"),
        (np.ones(3), r"array \(M, d\)"),
    ],
)
def test_bad_items_are_refused_with_the_reason(source, message):
    with pytest.raises(ValueError, match=message):
        read_items(source)


def test_a_ragged_csv_is_refused(tmp_path):
    (tmp_path / "items.csv").write_text("id,v0\na,1\nb\n")
    with pytest.raises(ValueError, match="row 3: 1 fields, the header has 2"):
        read_items(tmp_path / "items.csv")


def test_a_catalogue_comes_back_row_by_row_from_its_bodies(monkeypatch):
    import lser.online.items as module

    monkeypatch.setattr(module, "CHUNK", 7)
    items, rng = Items(3), np.random.default_rng(0)
    for turn in range(30):
        ids = [f"i{n}" for n in rng.permutation(40)[:5]]
        if turn % 3 == 2:
            items.remove(ids)
        else:
            items.put(ids, rng.standard_normal((5, 3)), [{"turn": turn}, None, None, {}, {"a": 1}])
    twin = Items(3)
    twin.put(["other"], np.ones((1, 3)), [{"x": 1}])  # begins anew all the same
    bodies = list(items.bodies())
    assert len(bodies) == -(-items.rows // 7)
    for body in bodies:
        twin.apply(orjson.loads(body))
    assert (twin.rows, twin.row) == (items.rows, items.row)
    np.testing.assert_array_equal(twin.live, items.live)
    np.testing.assert_array_equal(twin.vectors[twin.live], items.vectors[items.live])
    for row in items.row.values():
        assert twin.attributes(row) == items.attributes(row)
    assert np.array_equal(twin.eligible(where={"a": 1}), items.eligible(where={"a": 1}))


@pytest.mark.parametrize("content", [None, b"", b"PAR1 but no more"])
def test_a_parquet_file_that_is_none_is_refused_by_its_name(content, tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "items.parquet"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match="items.parquet (does not exist|is no Parquet file)"):
        read_columns(path)


@pytest.mark.parametrize("content", [b"id,v0\n\xff\xfe,1\n", b"id,v0\n" + b"x" * 200_000 + b",1\n"])
def test_a_csv_file_that_is_none_is_refused_by_its_name(content, tmp_path):
    path = tmp_path / "items.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="items.csv is no CSV file"):
        read_columns(path)
