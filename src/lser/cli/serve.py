"""``lser serve``: an online recommender behind HTTP, in one command."""

import logging
import sys
import webbrowser
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from lser.checks import check_number

INSTALL = "the service needs more packages: pip install -e '.[online]' in the clone"


def serve(argv: list[str]) -> int:
    """Serve a shop."""
    return int(tyro.cli(_serve, args=argv, prog="lser serve"))


def _serve(
    shop: Annotated[Path | None, tyro.conf.Positional] = None,
    /,
    log: str | None = None,
    items: Path | None = None,
    features: int | None = None,
    arm: tyro.conf.UseAppendAction[tuple[str, ...]] = (),
    k: int | None = None,
    window: float | None = None,
    session_timeout: float | None = None,
    cold: Literal["popular", "bandit", "none"] | None = None,
    pace: float | None = None,
    publish_every: float | None = None,
    release: Literal["auto", "manual"] | None = None,
    canary: float | None = None,
    retention_days: float | None = None,
    durability: Literal["process", "power"] = "process",
    learner: bool = True,
    host: str = "127.0.0.1",
    port: int = 8_080,
    rate: float = 0.0,
    body_limit: int = 1_000_000,
    writer_token_file: Path | None = None,
    admin_token_file: Path | None = None,
    demo: bool = False,
    seconds: float = 0.0,
    browser: bool = True,
) -> int:
    """Serve recommendations over HTTP and learn from the clicks; the live page is at /.

    The folder SHOP holds everything: the log, which is the truth, policies and snapshots. Start
    it again with the same command and it goes on where it stopped. Tokens come from
    LSER_WRITER_TOKEN and LSER_ADMIN_TOKEN or from files.

    With --log postgresql://... the shop is in a database that any number of servers share, on
    as many machines; one learner at a time has the lease.

    example: lser serve shop --items items.csv --features 8 --arm lser-steady --arm bandit=.1

    Args:
        shop: Folder of the shop.
        log: Address of a PostgreSQL database that holds the shop in place of a folder.
        items: CSV or Parquet of the items: id, v0, v1, ... and attributes; needed once.
        features: Numbers about the visitor that requests will give.
        arm: Arm of the traffic, NAME or NAME=SHARE, the first is the control; may be repeated.
        k: Items on a page.
        window: Seconds in which feedback counts.
        session_timeout: Seconds without a page that end a visit.
        cold: What an arm shows until its learner has proved better.
        pace: Updates per page.
        publish_every: Seconds between new policies.
        release: Whether sound policies go live by themselves.
        canary: Share of an arm's visitors who see a new policy before the others do.
        retention_days: Days after which decisions and feedback are deleted.
        durability: What acknowledged events survive: the end of any process, or power loss; in a
            database always both.
        learner: Learn here, or stand by while another server does.
        host: Address to listen on; others than this machine's own need tokens.
        port: Port to listen on.
        rate: Requests per second and client address; 0: no limit.
        body_limit: Most bytes of a request.
        writer_token_file: File with the token of those who recommend and report.
        admin_token_file: File with the token of those who promote and roll back.
        demo: Serve a Bazaar catalogue to a crowd of simulated shoppers and open the page.
        seconds: End the demo after so many seconds; 0: when interrupted.
        browser: Open the demo's page in a browser.
    """
    try:
        from lser.online.service.limits import Limits, Tokens, check_host
        from lser.online.service.server import Options
        from lser.online.service.supervisor import Supervisor
        from lser.online.settings import Settings, parse_arms
        from lser.online.store import is_database, open_store
    except ModuleNotFoundError as error:
        raise ValueError(f"{INSTALL} ({error})") from None
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s", stream=sys.stderr)
    check_host(host, Tokens.of(writer_token_file, admin_token_file))
    if demo:
        from lser.online.demo import run_demo

        check_number("--seconds", seconds, low=0.0)
        address = f"http://{host}:{port}/"
        opened = (lambda: webbrowser.open(address)) if browser else None
        return run_demo(shop, host=host, port=port, seconds=seconds, ready=opened)
    if log is not None and (shop is not None or not is_database(log)):
        raise ValueError(f"--log takes postgresql://..., and no folder beside it, got {log!r}")
    if shop is None and log is None:
        raise ValueError("name the shop's folder, or use --demo")
    store = open_store(log or str(shop))
    values: dict[str, Any] = {
        "features": features, "k": k, "window": window, "session_timeout": session_timeout,
        "cold": cold, "pace": pace, "publish_every": publish_every, "release": release,
        "retention_days": retention_days, "arms": parse_arms(arm) if arm else None,
        "canary": canary,
    }  # fmt: skip
    settings = {name: value for name, value in values.items() if value is not None}
    Settings(**settings)  # what is wrong is said here, before any process is started
    if shop is not None and store.exists():
        store.reader().close()
    options = Options(
        shop=store.address,
        items=items,
        host=host,
        port=port,
        durability=durability,
        learner="process" if learner else "off",
        settings=settings,
        limits=Limits(rate=rate, body=body_limit),
        writer_token_file=writer_token_file,
        admin_token_file=admin_token_file,
        title=store.name if shop is None else shop.resolve().name,
    )
    print(f"serving {store.name} at http://{host}:{port}/", file=sys.stderr)
    return Supervisor(options).run()
