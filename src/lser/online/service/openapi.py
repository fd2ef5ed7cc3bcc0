"""The service described in OpenAPI 3.1, by hand: it says what `requests` checks."""

from typing import Any

from lser.online.service.limits import Limits

_ID: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 256}
_VALUE: dict[str, Any] = {"type": ["string", "number", "boolean"]}


def document(version: str, limits: Limits) -> dict[str, Any]:
    """The whole description."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "lser",
            "version": version,
            "description": "A recommender that learns from clicks while it serves.",
        },
        "paths": _paths(),
        "components": {
            "schemas": _schemas(limits),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _paths() -> dict[str, Any]:
    version = {"type": "integer", "minimum": 0}
    return {
        "/recommend": {"post": _operation("A page for a visitor", "Recommend", "Page")},
        "/feedback": {
            "post": _operation("What became of pages: one report or a list", "Feedback", "Taken")
        },
        "/items": {
            "get": _operation("The catalogue, by pages", None, "Items", _query("after", "limit")),
            "put": _operation("Add or change items: one or a list", "ItemsPut", "Taken"),
        },
        "/items/{id}": {
            "parameters": [_path("id", _ID)],
            "get": _operation("One item", None, "Item"),
            "put": _operation("Add or change an item", "ItemPut", "Taken"),
            "delete": _operation("Remove an item", None, "Taken"),
        },
        "/policies": {"get": _operation("Every arm's policies", None, "Any")},
        "/policies/{arm}/{version}/promote": {
            "parameters": [_path("arm", _ID), _path("version", version)],
            "post": _operation("Make a version current (admin)", None, "Taken"),
        },
        "/policies/{arm}/{version}/rollback": {
            "parameters": [_path("arm", _ID), _path("version", version)],
            "post": _operation("Go back to a version and hold it (admin)", None, "Taken"),
        },
        "/health/live": {"get": _operation("The process answers", None, "Any")},
        "/health/ready": {"get": _operation("The log takes events", None, "Any")},
        "/metrics": {"get": _operation("Numbers for Prometheus", None, None)},
        "/live": {"get": _operation("The live page's data, as server-sent events", None, None)},
    }


def _schemas(limits: Limits) -> dict[str, Any]:
    vector = {"type": "array", "items": {"type": "number"}}
    ids = {"type": "array", "items": _ID, "maxItems": limits.items}
    attributes = {"type": "object", "additionalProperties": _VALUE}
    report = {
        "type": "object",
        "required": ["page"],
        "additionalProperties": False,
        "properties": {
            "id": {**_ID, "description": "the same id again changes nothing"},
            "page": {**_ID, "description": "the id of the page"},
            "clicks": {"type": "array", "items": _ID, "maxItems": limits.k},
            "value": {"type": "number", "description": "added to the page's reward"},
        },
    }
    item = {
        "type": "object",
        "additionalProperties": False,
        "properties": {"id": _ID, "vector": vector, "attributes": attributes},
    }
    named = {**item, "required": ["id"]}
    return {
        "Recommend": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "id": {**_ID, "description": "the same id again returns the logged page"},
                "user": _ID,
                "session": _ID,
                "features": vector,
                "k": {"type": "integer", "minimum": 1, "maximum": limits.k},
                "among": ids,
                "exclude": ids,
                "where": {"type": "object", "additionalProperties": True, "maxProperties": 20},
            },
        },
        "Page": {
            "type": "object",
            "properties": {
                "id": _ID,
                "items": ids,
                "propensities": vector,
                "arm": {"type": "string"},
                "policy": {"type": "string"},
                "session": {"type": "string"},
            },
        },
        "Report": report,
        "Feedback": {"oneOf": [report, {"type": "array", "items": report, "maxItems": 1000}]},
        "ItemPut": item,
        "ItemsPut": {"oneOf": [named, {"type": "array", "items": named, "minItems": 1}]},
        "Item": item,
        "Items": {"type": "object", "properties": {"items": {"type": "array", "items": item}}},
        "Taken": {"type": "object", "properties": {"new": {"type": "integer"}}},
        "Any": {"type": "object"},
        "Error": {"type": "object", "properties": {"error": {"type": "string"}}},
    }


def _operation(
    summary: str,
    request: str | None,
    response: str | None,
    parameters: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": "done"}
    if response is not None:
        answer["content"] = _json(response)
    refusal = {"description": "refused, and why", "content": _json("Error")}
    found: dict[str, Any] = {
        "summary": summary,
        "responses": {"200": answer, "4XX": refusal, "503": refusal},
    }
    if request is not None:
        found["requestBody"] = {"required": True, "content": _json(request)}
    if parameters:
        found["parameters"] = parameters
    return found


def _json(name: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}


def _path(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _query(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "in": "query", "schema": {"type": "string"}} for name in names]
