"""``lser policy``: promote and roll back policies of a running service."""

import http.client
import json
import os
import urllib.error
import urllib.request
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

import tyro

from lser.cli.words import plain


def policy(argv: list[str]) -> int:
    """List, promote or roll back policies."""
    return int(tyro.cli(_policy, args=argv, prog="lser policy"))


def _policy(
    action: Annotated[Literal["list", "promote", "rollback"], tyro.conf.Positional] = "list",
    arm: Annotated[str, tyro.conf.Positional] = "",
    version: Annotated[int, tyro.conf.Positional] = 0,
    /,
    url: str = "http://127.0.0.1:8080",
    token_file: Path | None = None,
) -> int:
    """List the policies of a running service, promote one, or go back to one and hold it.

    Version 0 of a rollback is the control's policy. The token, where one is needed, comes from
    LSER_ADMIN_TOKEN or a file.

    example: lser policy rollback lser 12

    Args:
        action: What to do.
        arm: Which arm.
        version: Which version.
        url: Where the service is.
        token_file: File with the admin token.
    """
    if action == "list":
        print(plain(_table(_ask(url, "/policies", "GET", token_file))))
        return 0
    if not arm or (action == "promote" and version < 1) or version < 0:
        raise ValueError(f"lser policy {action} needs an arm and a version, got {arm!r} {version}")
    _ask(url, f"/policies/{quote(arm, safe='')}/{version}/{action}", "POST", token_file)
    print(f"{action}: {arm} {version}")
    return 0


def _ask(url: str, path: str, method: str, token_file: Path | None) -> dict[str, Any]:
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"--url must begin with http:// or https://, got {url!r}")
    token = token_file.read_text().strip() if token_file else os.environ.get("LSER_ADMIN_TOKEN")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(url.rstrip("/") + path, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            found = _plain(answer.read())
    except urllib.error.HTTPError as error:
        told = _plain(error.read()) or {}
        raise ValueError(str(told.get("error", f"{url} answers {error}"))) from None
    except urllib.error.URLError as error:
        raise ValueError(f"{url} does not answer: {error.reason}") from None
    except http.client.HTTPException as error:
        raise ValueError(f"{url} does not speak HTTP: {error!r}") from None
    if found is None:
        raise ValueError(f"{url} is no service of lser: its answer is no JSON object")
    return found


def _plain(answer: bytes) -> dict[str, Any] | None:
    """The JSON object of an answer; what stands between may answer with a page of its own."""
    try:
        found = json.loads(answer)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _table(found: dict[str, Any]) -> str:
    lines = [f"{'policy':<18}{'state':<14}{'pages':>10}{'updates':>10}  notes"]
    for arm, policies in found.items():
        for one in policies["versions"]:
            notes = "; ".join(one["problems"]) or ("held" if policies["held"] else "")
            name = f"{arm} {one['version']}"
            counts = f"{one['pages']:>10,}{one['updates']:>10,}"
            lines.append(f"{name:<18}{one['state']:<14}{counts}  {notes}".rstrip())
    return "\n".join(lines)
