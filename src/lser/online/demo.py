"""``lser serve --demo``: a Bazaar catalogue, and a crowd of simulated shoppers over HTTP."""

import http.client
import json
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from lser.online.service.limits import Tokens
from lser.online.service.server import Options
from lser.online.service.supervisor import Supervisor
from lser.simulators.bazaar import Params
from lser.simulators.bazaar.simulator import Bazaar

ARMS = (("lser-steady", 0.4), ("bandit", 0.4), ("random", 0.2))
ROUND = 0.3  # seconds at least between two pages of a shopper: the learner shares the machine
STATE_DEPENDENCE = 0.75  # as in `lser demo`: the right page depends on the user
SETTINGS: dict[str, Any] = {
    "arms": ARMS,
    "cold": "none",
    "window": 4.0,
    "session_timeout": 60.0,
    "publish_every": 2.0,
    "learning_starts": 200,
    "learn_from": "own",  # every arm lives on what its own pages earn
    "snapshot_every": 20.0,
}


class Crowd:
    """Shoppers of Bazaar: each looks at a page, clicks some of it, and stays or leaves."""

    def __init__(self, host: str, port: int, *, shoppers: int = 64, seed: int = 0) -> None:
        """So many shoppers at a time, one keep-alive connection each thread."""
        self.simulator = Bazaar(Params(actions="slate", state_dependence=STATE_DEPENDENCE))
        self._address = (host, port)
        token = Tokens.of().writer  # as the service reads it
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._rng = np.random.default_rng(seed)
        self._users = self.simulator.arrive(self._rng, shoppers)
        self._names = [f"shopper {number}" for number in range(1, shoppers + 1)]
        self._met = shoppers
        self.pages = self.clicks = self.failures = 0
        self._threads = 4

    def items(self) -> tuple[list[str], Any]:
        """The catalogue: ids and vectors."""
        world = self.simulator.world
        return [f"item {number}" for number in range(len(world.features))], world.features

    @property
    def features(self) -> int:
        """Numbers about a shopper."""
        return sum(self.simulator.params.demographics)

    def round(self) -> None:
        """Every shopper looks at one page."""
        count = len(self._names)
        features = np.zeros((count, self.features))
        offsets = self.simulator.world.offsets
        features[np.arange(count)[:, None], self._users.groups + offsets] = 1
        pages = self._all(
            [
                ("/recommend", {"user": name, "features": row.tolist(), "k": 10})
                for name, row in zip(self._names, features, strict=True)
            ]
        )
        slates = np.array(
            [
                [int(item.removeprefix("item ")) for item in page["items"]] if page
                else self._rng.permutation(self.simulator.params.items)[:10].tolist()
                for page in pages
            ]
        )  # fmt: skip
        outcome = self.simulator.step(self._users, slates, self._rng)
        clicked = outcome.info["clicked"]
        reports = [
            ("/feedback", {"page": page["id"], "clicks": [f"item {i}" for i in slate[hits]]})
            for page, slate, hits in zip(pages, slates, clicked, strict=True)
            if page and hits.any()
        ]
        self._all(reports)
        self.pages += count
        self.clicks += int(clicked.sum())
        self._replace(np.flatnonzero(outcome.terminated))

    def _replace(self, left: Any) -> None:
        """Those who left make room for others."""
        new = self.simulator.arrive(self._rng, len(left))
        for name, values in vars(self._users).items():
            values[left] = getattr(new, name)
        for place in left:
            self._met += 1
            self._names[place] = f"shopper {self._met}"

    def _all(self, calls: list[tuple[str, dict[str, Any]]]) -> list[dict[str, Any] | None]:
        """Do calls side by side; None where one failed."""
        answers: list[dict[str, Any] | None] = [None] * len(calls)

        def work(first: int) -> None:
            connection = http.client.HTTPConnection(*self._address, timeout=10)
            for place in range(first, len(calls), self._threads):
                answers[place] = self._call(connection, *calls[place])
            connection.close()

        threads = [threading.Thread(target=work, args=(n,)) for n in range(self._threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return answers

    def _call(
        self, connection: http.client.HTTPConnection, path: str, body: dict[str, Any]
    ) -> dict[str, Any] | None:
        try:
            connection.request("POST", path, json.dumps(body), self._headers)
            answer = connection.getresponse()
            text = answer.read()
            if answer.status == 200:
                found: dict[str, Any] = json.loads(text)
                return found
        except (OSError, http.client.HTTPException):
            connection.close()
        self.failures += 1
        return None


def _items_file(path: Path, ids: list[str], vectors: Any) -> Path:
    """A CSV file of a catalogue."""
    header = ",".join(["id", *(f"v{n}" for n in range(vectors.shape[1]))])
    rows = [",".join([id, *map(str, row)]) for id, row in zip(ids, vectors.tolist(), strict=True)]
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def run_demo(
    folder: Path | None,
    *,
    host: str,
    port: int,
    seconds: float = 0.0,
    ready: Callable[[], object] | None = None,
) -> int:
    """Serve the demo until interrupted or for so many seconds; `ready` is called when it is up."""
    scratch = Path(tempfile.mkdtemp(prefix="lser-demo-"))
    shop = folder or scratch / "shop"
    crowd = Crowd(host, port)
    options = Options(
        shop=str(shop),
        items=_items_file(scratch / "items.csv", *crowd.items()),
        host=host,
        port=port,
        title="lser demo: a Bazaar with simulated shoppers",
        settings={**SETTINGS, "features": crowd.features},
    )
    supervisor = Supervisor(options)
    ended = threading.Event()

    def shop_on() -> None:
        if not supervisor.wait_until_ready():
            return
        print(f"watch it at http://{host}:{port}/ (Ctrl-C ends it)", file=sys.stderr)
        if ready is not None:
            ready()
        end = time.monotonic() + seconds if seconds else float("inf")
        while not ended.is_set() and time.monotonic() < end:
            began = time.monotonic()
            crowd.round()
            ended.wait(max(0.0, ROUND - (time.monotonic() - began)))
        supervisor.stop()

    thread = threading.Thread(target=shop_on, daemon=True)
    thread.start()
    try:
        code = supervisor.run()
    finally:
        ended.set()
        thread.join(timeout=15)
        shutil.rmtree(scratch, ignore_errors=True)
    rate = crowd.clicks / max(10 * crowd.pages, 1)
    print(f"{crowd.pages:,} pages, CTR {rate:.3f}")
    if crowd.failures:
        print(f"{crowd.failures:,} requests were not answered", file=sys.stderr)
    return code
