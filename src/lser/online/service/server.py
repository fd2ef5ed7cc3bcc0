"""One server process: ``python -m lser.online.service.server OPTIONS PARENT``.

Started by the supervisor, which starts another one when it ends unasked.
"""

import asyncio
import gc
import json
import logging
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn

from lser.online.recommender import Recommender
from lser.online.service.app import App
from lser.online.service.limits import Limits, Tokens, check_host
from lser.online.settings import Settings
from lser.online.store import open_store

SWITCH = 5e-4  # seconds until the log's thread gets its turn; Python's own 5 ms are felt
DRAIN = 10  # seconds that open requests are given at the end
# Objects made until cycles are looked for, and looks until older ones are looked through: pages
# that wait for their clicks are many and in no cycle, and a look through them stops every request.
GARBAGE = (20_000, 20, 50)


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a shop is served."""

    shop: str  # a folder, or the address of a database
    items: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8_080
    durability: Any = "process"
    learner: Any = "process"
    title: str = "lser"
    settings: dict[str, Any] = field(default_factory=dict)  # of a new shop, or changes
    limits: Limits = field(default_factory=Limits)
    writer_token_file: Path | None = None
    admin_token_file: Path | None = None

    def as_json(self) -> str:
        """For the command line of a process."""
        values = {**vars(self), "limits": vars(self.limits)}
        return json.dumps(values, default=str)

    @classmethod
    def from_json(cls, text: str) -> "Options":
        """The options of `as_json`."""
        values = json.loads(text)
        for name in ("items", "writer_token_file", "admin_token_file"):
            values[name] = None if values[name] is None else Path(values[name])
        return cls(**{**values, "limits": Limits(**values["limits"])})


def open_shop(options: Options) -> Recommender:
    """The recommender of a shop: a new one, or the one that is there with settings changed."""
    changes = dict(options.settings)
    if "arms" in changes:
        changes["arms"] = tuple((name, share) for name, share in changes["arms"])
    store = open_store(options.shop)
    exists = store.exists()
    if not exists and options.items is None:
        raise ValueError(f"{store.name} holds no shop yet: name its items with --items")
    recommender = Recommender(
        options.items,
        store,
        settings=None if exists else Settings(**changes),
        durability=options.durability,
        learner=options.learner,
    )
    if exists and changes:
        try:
            recommender.change(changes)
        except BaseException:
            recommender.close()
            raise
    return recommender


def serve(options: Options, parent: int) -> None:
    """Serve until told to stop or `parent` is gone; then drain, flush and save."""
    tokens = Tokens.of(options.writer_token_file, options.admin_token_file)
    check_host(options.host, tokens)
    app = App(open_shop(options), tokens=tokens, limits=options.limits, title=options.title)
    config = uvicorn.Config(
        app,
        host=options.host,
        port=options.port,
        access_log=False,
        log_level="warning",
        server_header=False,
        proxy_headers=False,  # nobody in front is trusted to say who asks
        timeout_graceful_shutdown=DRAIN,
        timeout_keep_alive=75,
        limit_concurrency=2_000,
        h11_max_incomplete_event_size=65_536,
    )
    server = uvicorn.Server(config)
    app.stopping = lambda: server.should_exit

    async def run() -> None:
        watch = asyncio.create_task(_watch_parent(server, parent))
        await server.serve()
        watch.cancel()

    gc.collect()
    gc.freeze()  # the catalogue stays: nobody need look through it again
    gc.set_threshold(*GARBAGE)
    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:  # uvloop where it is
        runner.run(run())
    if not server.started:
        app.recommender.close()
        raise OSError(f"cannot listen on {options.host}:{options.port}")


async def _watch_parent(server: uvicorn.Server, parent: int) -> None:
    """Stop when the supervisor is gone."""
    while os.getppid() == parent:
        await asyncio.sleep(1.0)
    server.should_exit = True


if __name__ == "__main__":
    sys.setswitchinterval(SWITCH)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s")
    try:
        serve(Options.from_json(sys.argv[1]), int(sys.argv[2]))
    except (ValueError, OSError) as problem:
        print(f"lser: error: {problem}", file=sys.stderr)
        sys.exit(2)
