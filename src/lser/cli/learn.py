"""``lser learn``: the learner of a shop that several servers share, on a machine of its own."""

import logging
import sys

import tyro


def learn(argv: list[str]) -> int:
    """Learn for a shop."""
    return int(tyro.cli(_learn, args=argv, prog="lser learn"))


def _learn(log: str) -> int:
    """Learn for a shop in a PostgreSQL database, beside `lser serve --log ... --no-learner`.

    One learner at a time has the shop's lease. Others, here or in servers, stand by and take over
    within seconds when it ends; whoever has lost the lease cannot write any more.

    example: lser learn --log postgresql://shop@db.example/shop

    Args:
        log: Address of the database.
    """
    from lser.online.learner_process import run
    from lser.online.store import is_database, open_store

    if not is_database(log):
        raise ValueError(f"--log takes postgresql://..., got {log!r}; a folder's server learns")
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s", stream=sys.stderr)
    print(f"learning for {open_store(log).name}", file=sys.stderr)
    run(log, 0)
    return 0
