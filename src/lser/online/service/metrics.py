"""Numbers about the service: counters and latencies, for Prometheus and for the live page."""

import math
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from typing import Any

from lser.online.books import Books
from lser.online.log import Log

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Meter:
    """Requests and their latencies by route."""

    def __init__(self) -> None:
        """Start at zero."""
        self.requests: dict[tuple[str, int], int] = {}
        self._buckets: dict[str, list[int]] = {}
        self._sums: dict[str, float] = {}
        self._recent: deque[tuple[float, float]] = deque(maxlen=5_000)

    def note(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        key = (route, status)
        self.requests[key] = self.requests.get(key, 0) + 1
        buckets = self._buckets.get(route)
        if buckets is None:
            buckets = self._buckets[route] = [0] * (len(BUCKETS) + 1)
        buckets[bisect_left(BUCKETS, seconds)] += 1
        self._sums[route] = self._sums.get(route, 0.0) + seconds
        if route in ("/recommend", "/feedback"):
            self._recent.append((time.monotonic(), seconds))

    def recent(self, span: float = 5.0) -> dict[str, float | None]:
        """Requests per second and latencies in ms over the last seconds."""
        edge = time.monotonic() - span
        times = sorted(seconds for at, seconds in list(self._recent) if at >= edge)
        if not times:
            return {"rate": 0.0, "p50": None, "p99": None}
        oldest = max(edge, self._recent[0][0])
        passed = max(time.monotonic() - oldest, 0.2)
        middle, high = times[len(times) // 2], times[min(len(times) - 1, int(len(times) * 0.99))]
        return {"rate": len(times) / passed, "p50": 1e3 * middle, "p99": 1e3 * high}

    def lines(self) -> Iterator[str]:
        """In Prometheus' text format."""
        yield "# TYPE lser_requests_total counter"
        for (route, status), count in sorted(self.requests.items()):
            yield f'lser_requests_total{{route="{route}",status="{status}"}} {count}'
        yield "# TYPE lser_request_seconds histogram"
        for route, buckets in sorted(self._buckets.items()):
            total = 0
            for edge, count in zip((*BUCKETS, math.inf), buckets, strict=True):
                total += count
                name = "+Inf" if math.isinf(edge) else f"{edge}"
                yield f'lser_request_seconds_bucket{{route="{route}",le="{name}"}} {total}'
            yield f'lser_request_seconds_sum{{route="{route}"}} {self._sums[route]:.6f}'
            yield f'lser_request_seconds_count{{route="{route}"}} {total}'


def exposition(meter: Meter, log: Log, books: Books, learner: dict[str, Any]) -> str:
    """Everything, in Prometheus' text format."""
    groups: dict[str, list[str]] = {}  # all samples of a name stand together

    def one(name: str, kind: str, value: float, labels: str = "") -> None:
        if math.isfinite(value):
            group = groups.setdefault(name, [f"# TYPE lser_{name} {kind}"])
            group.append(f"lser_{name}{labels} {value}")

    one("log_events_total", "counter", log.rows)
    one("log_commits_total", "counter", log.commits)
    one("log_repeats_total", "counter", log.repeats)
    one("log_refused_total", "counter", log.refused)
    one("log_head", "gauge", log.head)
    with books.lock:
        for name, count in books.counts.items():
            one(f"{name}_total", "counter", count)
        one("open_decisions", "gauge", len(books.joins))
        one("visitors", "gauge", len(books.visitors))
        one("items", "gauge", len(books.items))
        for arm, tally in sorted(books.arms.total.items()):
            label = f'{{arm="{arm}"}}'
            interval = tally.interval()
            one("arm_pages_total", "counter", tally.pages, label)
            one("arm_ctr", "gauge", interval.estimate, label)
            one("arm_ctr_low", "gauge", interval.low, label)
            one("arm_ctr_high", "gauge", interval.high, label)
        for arm, versions in sorted(books.arms.versions.items()):
            one("policy_version", "gauge", versions.current, f'{{arm="{arm}"}}')
    for name in ("lag", "pages", "pace", "open", "late"):
        if name in learner:
            one(f"learner_{name}", "gauge", learner[name])
    for arm, stats in sorted(learner.get("learners", {}).items()):
        for name, value in stats.items():
            one(f"learner_{name}", "gauge", value, f'{{arm="{arm}"}}')
    lines = [*meter.lines(), *(line for group in groups.values() for line in group)]
    return "\n".join(lines) + "\n"
