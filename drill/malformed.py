"""Malformed requests, made from the service's own description."""

import json
import random
import string
from pathlib import Path
from typing import Any

from drill.service import Client, running

ODD: list[Any] = [
    None, True, False, 0, -1, 2**70, -(2**70), 1e308, 1e-320, 0.1, "", "x", "\x00", "é" * 300,
    "\ud7ff", [], [[]], {}, {"": ""}, [None], ["a", 1], "a" * 5_000, [0.0] * 3_000, "../../etc",
    '"; drop table event; --', {"$ref": "#"}, [{}] * 50,
]  # fmt: skip


class Fuzzer:
    """Bodies by schema, with something wrong most of the time."""

    def __init__(self, description: dict[str, Any], seed: int) -> None:
        """Go by an OpenAPI description."""
        self.rng = random.Random(seed)
        self.schemas = description["components"]["schemas"]
        self.operations = [
            (path, method, operation)
            for path, methods in description["paths"].items()
            for method, operation in methods.items()
            if method != "parameters" and path != "/live"
        ]

    def value(self, schema: dict[str, Any], depth: int = 0) -> Any:
        """A value of a schema, or something else."""
        rng = self.rng
        if "$ref" in schema:
            return self.value(self.schemas[schema["$ref"].rsplit("/", 1)[1]], depth)
        if rng.random() < 0.15 or depth > 5:
            return rng.choice(ODD)
        if "oneOf" in schema:
            return self.value(rng.choice(schema["oneOf"]), depth)
        kind = schema.get("type", "object")
        match rng.choice(kind) if isinstance(kind, list) else kind:
            case "object":
                made = {
                    name: self.value(part, depth + 1)
                    for name, part in schema.get("properties", {}).items()
                    if rng.random() < 0.6
                }
                if rng.random() < 0.1:
                    made["".join(rng.choices(string.printable, k=5))] = rng.choice(ODD)
                return made
            case "array":
                count = rng.choice([0, 1, 2, 2, 4])
                return [self.value(schema["items"], depth + 1) for _ in range(count)]
            case "integer":
                return rng.choice([0, 1, 5, 10, -3, 1_000, 1_001, 10**12, 2.5])
            case "number":
                return rng.choice([0, 0.5, -1.5, 1e30, 1e-9])
            case "boolean":
                return rng.random() < 0.5
        return rng.choice(["u1", "a", "3", "17", "u/2", "ü"])

    def body(self, operation: dict[str, Any]) -> bytes:
        """A body for an operation, now and then cut or not even text."""
        if "requestBody" not in operation:
            return b""
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        text = json.dumps(self.value(schema)).encode()
        roll = self.rng.random()
        if roll < 0.05:
            return text[: self.rng.randrange(len(text) + 1)]
        if roll < 0.1:
            return bytes(self.rng.randrange(256) for _ in range(self.rng.randrange(200)))
        if roll < 0.12:
            return b"[" * 5_000
        return text

    def path(self, path: str) -> str:
        """A path with something in its places."""
        part = self.rng.choice(["3", "17", "999999999999999999999", "x", "%00", "a%2Fb", "%F0%9F"])
        arm = self.rng.choice(["lser", "bandit", "nobody"])
        return path.replace("{id}", part).replace("{arm}", arm).replace("{version}", part)


def fuzz(folder: Path, count: int, **options: Any) -> tuple[dict[int, int], list[str]]:
    """Send so many; how often each status was answered, and what was not honest."""
    seen: dict[int, int] = {}
    broken = []
    with running(folder, **options) as (supervisor, port):
        client = Client(port)
        fuzzer = Fuzzer(client("GET", "/openapi.json")[1], seed=1)
        for _ in range(count):
            path, method, operation = fuzzer.rng.choice(fuzzer.operations)
            body = fuzzer.body(operation)
            status, text, _ = client.raw(method.upper(), fuzzer.path(path), body)
            if status >= 500 or (status >= 400 and not text):
                broken.append(f"{method} {path} {body[:200]!r}: {status} {text[:200]!r}")
            seen[status] = seen.get(status, 0) + 1
        asked = {"user": "u", "features": [0.0, 0.0], "k": 2}
        if client("POST", "/recommend", asked)[0] != 200:
            broken.append("a right request is not answered any more")
        client.close()
        if supervisor.starts != 1:
            broken.append(f"the server was started {supervisor.starts} times")
    return seen, broken
