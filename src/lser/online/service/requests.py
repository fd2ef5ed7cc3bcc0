"""Bodies of requests: read from JSON, checked field by field, refused with what is wrong."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from lser.online.desk import Asked, Request
from lser.online.items import Value
from lser.online.log import Entry
from lser.online.recommender import Recommender
from lser.online.service.limits import Limits, RefusedError

_RECOMMEND = {"id", "user", "session", "features", "k", "among", "where", "exclude"}
_FEEDBACK = {"id", "page", "clicks", "value"}
_ITEM = {"id", "vector", "attributes"}
_NUMBERS = {int, float}


def read_json(body: bytes) -> Any:
    """The value of a JSON text."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RefusedError(400, f"the body is not JSON: {error}") from None


def recommend(recommender: Recommender, body: bytes, limits: Limits) -> Asked:
    """The decision that a request asks for."""
    values = _object(read_json(body), _RECOMMEND)
    k = values.get("k")
    if k is not None and (isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= limits.k):
        raise RefusedError(422, f"k must be a whole number from 1 to {limits.k}")
    for name in ("id", "user", "session"):
        if values.get(name) is not None and not isinstance(values[name], str):
            raise RefusedError(422, f"{name} must be a text")
    request = Request(
        values.get("user"),
        _numbers("features", values.get("features")),
        k,
        values.get("id"),
        values.get("session"),
        _texts("among", values.get("among"), limits.items),
        _filter(values.get("where")),
        _texts("exclude", values.get("exclude"), limits.items) or (),
    )
    try:
        return recommender.desk.decision(request)
    except ValueError as error:
        raise RefusedError(422, str(error)) from None


def feedback(recommender: Recommender, body: bytes, limits: Limits) -> tuple[list[Entry], bool]:
    """The reports of a request, and whether it was a list."""
    value = read_json(body)
    many = isinstance(value, list)
    reports = value if many else [value]
    if len(reports) > limits.reports:
        raise RefusedError(422, f"at most {limits.reports} reports at once, got {len(reports)}")
    return [_report(recommender, report, limits) for report in reports], many


def _report(recommender: Recommender, report: Any, limits: Limits) -> Entry:
    values = _object(report, _FEEDBACK)
    if not isinstance(values.get("page"), str):
        raise RefusedError(422, "page must be the id of a page")
    id, value = values.get("id"), values.get("value")
    if id is not None and not isinstance(id, str):
        raise RefusedError(422, "id must be a text")
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise RefusedError(422, "value must be a number")
    clicks = _texts("clicks", values.get("clicks"), limits.k) or ()
    try:
        return recommender.desk.report(values["page"], clicks, value, id=id)
    except (ValueError, OverflowError) as error:
        raise RefusedError(422, str(error)) from None


class Put(NamedTuple):
    """Items to add or change."""

    ids: list[str]
    vectors: list[Any] | None
    attributes: list[dict[str, Value] | None] | None


def put_items(body: bytes, limits: Limits, id: str | None = None) -> Put:
    """The items of a request: one (whose id may stand in the path) or a list."""
    value = read_json(body)
    items = value if isinstance(value, list) else [value]
    if not 1 <= len(items) <= limits.items:
        raise RefusedError(422, f"1 to {limits.items} items at once, got {len(items)}")
    read = [_object(item, _ITEM) for item in items]
    if id is not None:
        if isinstance(value, list):
            raise RefusedError(422, "one item, not a list, belongs to a path with an id")
        if read[0].get("id", id) != id:
            raise RefusedError(422, "the id in the body is not the one in the path")
        read[0]["id"] = id
    ids = [item.get("id") for item in read]
    if not all(isinstance(name, str) for name in ids):
        raise RefusedError(422, "every item needs an id")
    if len(set(ids)) < len(ids):
        raise RefusedError(422, "an id appears twice")
    vectors = [_numbers("vector", item.get("vector")) for item in read]
    if any(vector is None for vector in vectors) and any(vector is not None for vector in vectors):
        raise RefusedError(422, "either every item has a vector or none has")
    attributes = [_attributes(item.get("attributes")) for item in read]
    known = None if all(a is None for a in attributes) else attributes
    return Put([str(name) for name in ids], None if vectors[0] is None else vectors, known)


def _object(value: Any, allowed: set[str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise RefusedError(422, "the body must be an object")
    if not value.keys() <= allowed:
        unknown, known = min(value.keys() - allowed), ", ".join(sorted(allowed))
        raise RefusedError(422, f"unknown field {unknown!r}; known: {known}")
    return value


def _texts(name: str, value: Any, most: int) -> list[str] | None:
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise RefusedError(422, f"{name} must be a list of ids")
    if len(value) > most:
        raise RefusedError(422, f"{name} must name at most {most}, got {len(value)}")
    return value


def _numbers(name: str, value: Any) -> list[float] | None:
    if value is None:
        return None
    if (
        not isinstance(value, list)
        or not _NUMBERS.issuperset(map(type, value))
        or not max(map(abs, value), default=0) < 1e30
    ):
        raise RefusedError(422, f"{name} must be a list of numbers")
    return value


def _filter(value: Any) -> dict[str, Value | Sequence[Value]] | None:
    if value is None:
        return None
    if not isinstance(value, dict) or len(value) > 20:
        raise RefusedError(422, "where must be an object of at most 20 attributes")
    for name, wanted in value.items():
        choices = wanted if isinstance(wanted, list) else [wanted]
        if not choices or len(choices) > 1_000 or not all(map(_plain, choices)):
            raise RefusedError(422, f"where[{name!r}] must be a value or a list of values")
    return value


def _attributes(value: Any) -> dict[str, Value] | None:
    if value is None:
        return None
    if not isinstance(value, dict) or len(value) > 100 or not all(map(_plain, value.values())):
        raise RefusedError(422, "attributes must be an object of texts, numbers and truth values")
    return value


def _plain(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, str | int | bool)
