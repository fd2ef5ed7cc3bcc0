"""What the service lets in: tokens, sizes and rates."""

import hmac
import os
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

LOCAL = ("127.0.0.1", "localhost", "::1")
CLIENTS = 10_000  # whose rates are followed


class RefusedError(Exception):
    """A request that is not served, with its status and reason."""

    def __init__(self, status: int, reason: str, headers: Mapping[str, str] | None = None) -> None:
        """Answer with `status` and `reason`."""
        super().__init__(reason)
        self.status, self.reason, self.headers = status, reason, dict(headers or {})


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The largest requests and the highest rate."""

    body: int = 1_000_000  # bytes
    items: int = 10_000  # in one request
    reports: int = 1_000  # of feedback in one request
    k: int = 1_000
    rate: float = 0.0  # requests per second and client address; 0: no limit
    timeout: float = 10.0  # seconds for a body to arrive, and for the log to answer

    def __post_init__(self) -> None:
        """Refuse values outside their range."""
        for name in ("body", "items", "reports", "k"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.rate < 0 or not self.timeout > 0:
            raise ValueError(f"rate and timeout must be positive, got {self.rate}, {self.timeout}")


@dataclass(frozen=True, repr=False)
class Tokens:
    """Who may write, and who may administer; empty where anybody may. Never printed."""

    writer: str = ""
    admin: str = ""

    @classmethod
    def of(cls, writer_file: Path | None = None, admin_file: Path | None = None) -> "Tokens":
        """Tokens of files, else of LSER_WRITER_TOKEN and LSER_ADMIN_TOKEN."""
        found = []
        for path, name in ((writer_file, "LSER_WRITER_TOKEN"), (admin_file, "LSER_ADMIN_TOKEN")):
            found.append(path.read_text().strip() if path else os.environ.get(name, "").strip())
        writer, admin = found
        for name, token in (("writer", writer), ("admin", admin)):
            if token and len(token) < 16:
                raise ValueError(f"the {name} token must have at least 16 characters")
        if writer and not admin:
            raise ValueError("a writer token without an admin token would leave the rest open")
        return cls(writer or admin, admin)

    def check(self, header: str, *, admin: bool) -> None:
        """Refuse a request whose Authorization header lacks a token that suffices."""
        if not self.admin:
            return
        given = header[7:].encode() if header[:7].lower() == "bearer " else b""
        is_admin = hmac.compare_digest(given, self.admin.encode())
        is_writer = hmac.compare_digest(given, self.writer.encode())
        if not given or not (is_admin or is_writer):
            raise RefusedError(401, "a token is needed", {"WWW-Authenticate": "Bearer"})
        if admin and not is_admin:
            raise RefusedError(403, "this needs the admin token")


def check_host(host: str, tokens: Tokens) -> None:
    """Refuse to listen to the world without tokens."""
    if host not in LOCAL and not tokens.admin:
        raise ValueError(
            f"--host {host} is open to others: set LSER_ADMIN_TOKEN and LSER_WRITER_TOKEN first"
        )


class Rates:
    """A bucket of requests for every client address, refilled at the rate."""

    def __init__(self, rate: float) -> None:
        """Allow `rate` requests per second and twice as many at once; 0: any number."""
        self._rate = rate
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def check(self, client: str) -> None:
        """Refuse a client who asks too often."""
        if not self._rate:
            return
        now = time.monotonic()
        left, at = self._left.pop(client, (2 * self._rate, now))
        left = min(2 * self._rate, left + (now - at) * self._rate)
        allowed = left >= 1
        self._left[client] = (left - 1 if allowed else left, now)
        if len(self._left) > CLIENTS:
            self._left.popitem(last=False)
        if not allowed:
            raise RefusedError(429, "too many requests", {"Retry-After": "1"})
