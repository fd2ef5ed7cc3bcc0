import os
import re
import signal
import threading

import numpy as np
import pytest
from drill.service import Client, free_port, running
from shops import Shoppers, catalogue

from lser.cli import main
from lser.online.service.limits import Limits, Rates, RefusedError, Tokens, check_host
from lser.online.service.metrics import Meter
from lser.online.service.server import Options
from lser.online.sqlite_reader import SqliteReader
from waiting import until


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("service")
    with running(folder) as (supervisor, port):
        yield supervisor, port, folder / "shop"


@pytest.fixture
def client(service):
    made = Client(service[1])
    yield made
    made.close()


@pytest.fixture
def trained(service, client):
    """The service once its bandit has a version that serves."""

    def serves():
        clicks_a_page(client)
        return client("GET", "/policies")[1].get("bandit", {}).get("current", 0) > 0

    until(serves, "the bandit's first version")
    return service


def clicks_a_page(client, pages=100):
    """Show so many pages to shoppers and report their clicks."""
    shoppers, hits = Shoppers(catalogue()), 0
    for number in range(pages):
        user = number % 40
        ask = {"user": f"m{user}", "features": shoppers.features[user].tolist(), "k": 5}
        page = client("POST", "/recommend", ask)[1]
        clicked = shoppers.clicks(user, page["items"])
        hits += len(clicked)
        if clicked:
            client("POST", "/feedback", {"page": page["id"], "clicks": clicked})
    return hits / pages


def clicks_by_chance():
    """On a page of five items drawn at random."""
    items = [str(number) for number in range(len(catalogue()))]
    shoppers = Shoppers(catalogue())
    return 5 * np.mean([len(shoppers.clicks(user, items)) for user in range(40)]) / len(items)


def test_a_page_and_its_feedback(client):
    status, page = client("POST", "/recommend", {"user": "u", "features": [0.1, 0.2], "k": 4})
    assert status == 200
    assert len(page["items"]) == len(page["propensities"]) == 4
    report = {"page": page["id"], "clicks": page["items"][:1]}
    assert client("POST", "/feedback", report) == (200, {"new": 1})
    assert client("POST", "/feedback", report) == (200, {"new": 0})
    many = [{"page": page["id"], "clicks": [i]} for i in page["items"][1:3]]
    assert client("POST", "/feedback", many) == (200, {"new": 2})


def test_a_retry_returns_the_logged_page_and_another_user_a_conflict(client):
    ask = {"id": "retry", "user": "u", "features": [0.1, 0.2]}
    first = client("POST", "/recommend", ask)
    assert client("POST", "/recommend", {**ask, "features": [5, 5], "k": 3}) == first
    status, answer = client("POST", "/recommend", {**ask, "user": "v"})
    assert status == 409
    assert "another user" in answer["error"]


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("/recommend", b"{", 400, "not JSON"),
        ("/recommend", b"[]", 422, "must be an object"),
        ("/recommend", b'{"usr": "u"}', 422, "unknown field 'usr'"),
        ("/recommend", b'{"user": 3}', 422, "user must be a text"),
        ("/recommend", b'{"user": "u", "features": [1]}', 422, "features must be 2 numbers"),
        ("/recommend", b'{"user": "u", "k": 0}', 422, "k must be a whole number"),
        ("/recommend", b'{"user": "u", "k": 1e9}', 422, "k must be a whole number"),
        ("/recommend", b'{"where": {"kind": []}}', 422, "must be a value or a list"),
        ("/feedback", b'{"clicks": []}', 422, "page must be the id"),
        ("/feedback", b'{"page": "x", "value": "1"}', 422, "value must be a number"),
        ("/feedback", b'[{"page": "x"}, 3]', 422, "must be an object"),
    ],
)
def test_bad_requests_say_what_is_wrong(client, path, body, status, message):
    got, text, _ = client.raw("POST", path, body)
    assert got == status
    assert message in text.decode()


def test_a_body_too_large_is_refused(service):
    client = Client(service[1])
    status, text, _ = client.raw("POST", "/recommend", b" " * 1_000_001)
    client.close()
    assert status == 413
    assert b"more than 1000000 bytes" in text


def test_items_are_put_read_listed_and_deleted(client):
    item = {"vector": [1, 2, 3, 4], "attributes": {"kind": "third"}}
    assert client("PUT", "/items/a%2Fb", item)[0] == 200
    status, found = client("GET", "/items/a%2Fb")
    assert status == 200
    assert found["attributes"] == {"kind": "third"}
    ask = {"user": "u", "features": [0, 0], "where": {"kind": "third"}}
    assert client("POST", "/recommend", ask)[1]["items"] == ["a/b"]
    listed = client("GET", "/items?limit=40")[1]
    assert listed["count"] == 61
    rest = client("GET", f"/items?limit=40&after={listed['next']}")[1]
    assert len(listed["items"]) + len(rest["items"]) == 61
    assert client("DELETE", "/items/a%2Fb") == (200, {"new": 1})
    assert client("GET", "/items/a%2Fb")[0] == client("DELETE", "/items/a%2Fb")[0] == 404
    assert client("PUT", "/items/x", {"vector": [1]})[0] == 422
    assert client("PUT", "/items", [{"id": "x", "vector": [1, 2, 3, "4"]}])[0] == 422


def test_health_description_and_the_page(client):
    assert client("GET", "/health/live") == (200, {"live": True})
    assert client("GET", "/health/ready")[1]["ready"] is True
    description = client("GET", "/openapi.json")[1]
    assert description["openapi"].startswith("3.1")
    for path in ("/recommend", "/feedback", "/items", "/items/{id}", "/metrics", "/health/ready"):
        assert path in description["paths"]
    status, text, headers = client.raw("GET", "/")
    assert status == 200
    assert b"<!doctype html>" in text
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert client("GET", "/nowhere")[0] == 404
    assert client("GET", "/recommend")[0] in (404, 405)


def test_it_learns_and_its_metrics_say_so(service, client):
    until(lambda: clicks_a_page(client) >= 1.8 * clicks_by_chance(), "the learning")
    until(lambda: "lser_learner_lag" in client("GET", "/metrics")[1])  # it may just begin
    text = client("GET", "/metrics")[1]
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(
        re.fullmatch(r'[a-z0-9_]+(\{[^{}]*\})? -?[0-9.e+-]+|.*"\+Inf"\} \d+', x) for x in lines
    )
    for name in ("lser_requests_total", "lser_request_seconds_bucket", "lser_arm_ctr",
                 "lser_policy_version", "lser_learner_lag", "lser_log_commits_total"):  # fmt: skip
        assert name in text


def test_policies_are_listed_promoted_and_rolled_back_by_command(trained, client, capsys):
    url = f"http://127.0.0.1:{trained[1]}"
    assert main(["policy", "list", "--url", url]) == 0
    assert "current" in capsys.readouterr().out
    current = client("GET", "/policies")[1]["bandit"]["current"]
    assert main(["policy", "rollback", "bandit", str(current), "--url", url]) == 0
    assert client("GET", "/policies")[1]["bandit"]["held"] is True
    assert main(["policy", "promote", "bandit", str(current), "--url", url]) == 0
    assert client("GET", "/policies")[1]["bandit"]["held"] is False
    assert main(["policy", "promote", "bandit", "99999", "--url", url]) == 2
    assert "has no version 99999" in capsys.readouterr().err
    assert client("POST", "/policies/bandit/1/explode")[0] == 404


def test_the_live_feed_is_server_sent_events(service):
    client = Client(service[1])
    client._connection.request("GET", "/live")
    answer = client._connection.getresponse()
    assert answer.headers["content-type"].startswith("text/event-stream")
    line = answer.readline()
    assert line.startswith(b"data: {")
    assert answer.readline() == b"\n"
    answer.close()
    client.close()


def test_a_backup_of_a_running_shop_is_a_shop(trained, tmp_path, capsys):
    assert main(["backup", str(trained[2]), str(tmp_path / "copy")]) == 0
    assert main(["backup", str(trained[2]), str(tmp_path / "copy")]) == 2
    from lser.online import Recommender

    with Recommender.open(tmp_path / "copy", learner="off") as copy:
        assert len(copy.recommend("u", [0, 0], 5).items) == 5
        assert copy.learn() > 0


def test_a_second_service_on_the_same_shop_is_turned_away(service, tmp_path):
    from lser.online.service.supervisor import Supervisor

    options = Options(shop=str(service[2]), port=free_port())
    assert Supervisor(options).run() == 2


@pytest.mark.slow
def test_stopping_drains_and_nothing_acknowledged_is_missing(tmp_path):
    acknowledged, refused = [], []
    with running(tmp_path) as (supervisor, port):

        def ask(thread):
            client = Client(port)
            try:
                for number in range(10_000):
                    body = {"id": f"{thread}-{number}", "features": [0, 0]}
                    status, page = client("POST", "/recommend", body)
                    (acknowledged if status == 200 else refused).append(page)
            except OSError:
                pass
            client.close()

        threads = [threading.Thread(target=ask, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        until((tmp_path / "shop" / "learner.json").exists)
        until(lambda: len(acknowledged) > 20)
        supervisor.stop()
        for thread in threads:
            thread.join()
    reader = SqliteReader(tmp_path / "shop")
    ids = {event.id for event in reader.of_kind("decision")}
    reader.close()
    assert {page["id"] for page in acknowledged} <= ids
    assert list((tmp_path / "shop" / "books").glob("*.lser"))  # saved at the end
    assert list((tmp_path / "shop" / "learner").glob("*.lser"))


@pytest.mark.slow
def test_a_killed_server_is_started_again(tmp_path):
    with running(tmp_path) as (supervisor, port):
        client = Client(port)
        first = client("POST", "/recommend", {"id": "a", "user": "u", "features": [0, 0]})
        client.close()
        os.kill(supervisor.pid, signal.SIGKILL)
        until(lambda: supervisor.starts == 2, "its second start")
        assert supervisor.wait_until_ready()
        client = Client(port)
        assert client("POST", "/recommend", {"id": "a", "user": "u", "features": [1, 1]}) == first
        client.close()


# tokens, rates, sizes


def test_tokens_let_in_who_has_them(tmp_path, monkeypatch):
    writer, admin = "w" * 20, "a" * 20
    tokens = Tokens(writer, admin)
    tokens.check(f"Bearer {writer}", admin=False)
    tokens.check(f"Bearer {admin}", admin=True)
    for header, admin_needed, status in (
        ("", False, 401), (f"Bearer {writer}x", False, 401), (f"Basic {writer}", False, 401),
        ("Bearer ", False, 401), (f"Bearer {writer}", True, 403),
    ):  # fmt: skip
        with pytest.raises(RefusedError) as refused:
            tokens.check(header, admin=admin_needed)
        assert refused.value.status == status
    assert writer not in repr(tokens)
    Tokens().check("", admin=True)  # none set: open
    (tmp_path / "admin").write_text("short")
    with pytest.raises(ValueError, match="at least 16 characters"):
        Tokens.of(None, tmp_path / "admin")
    monkeypatch.setenv("LSER_WRITER_TOKEN", writer)
    with pytest.raises(ValueError, match="without an admin token"):
        Tokens.of()


def test_listening_to_others_needs_tokens():
    check_host("127.0.0.1", Tokens())
    check_host("0.0.0.0", Tokens("w" * 16, "a" * 16))
    with pytest.raises(ValueError, match="open to others"):
        check_host("0.0.0.0", Tokens())


@pytest.mark.slow
def test_a_service_with_tokens_keeps_others_out(tmp_path, monkeypatch):
    writer, admin = "writer-token-123456", "admin-token-1234567"
    monkeypatch.setenv("LSER_WRITER_TOKEN", writer)
    monkeypatch.setenv("LSER_ADMIN_TOKEN", admin)
    with running(tmp_path, limits=Limits(rate=1_000)) as (_, port):
        nobody, shop, boss = Client(port), Client(port, writer), Client(port, admin)
        ask = {"user": "u", "features": [0, 0]}
        assert nobody("POST", "/recommend", ask)[0] == 401
        assert nobody("GET", "/metrics")[0] == nobody("GET", "/live?once=1")[0] == 401
        assert nobody("PUT", "/items/x", {"vector": [1, 2, 3, 4]})[0] == 401
        assert nobody("GET", "/health/live")[0] == nobody("GET", "/")[0] == 200
        assert shop("POST", "/recommend", ask)[0] == 200
        assert shop("POST", "/policies/lser/1/promote")[0] == 403
        assert boss("POST", "/policies/lser/99999/promote")[0] == 422
        for client in (nobody, shop, boss):
            client.close()


def test_rates_refill(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("lser.online.service.limits.time.monotonic", lambda: now[0])
    rates = Rates(5)
    for _ in range(10):
        rates.check("a")
    with pytest.raises(RefusedError) as refused:
        rates.check("a")
    assert refused.value.status == 429
    rates.check("b")
    now[0] = 0.2
    rates.check("a")
    with pytest.raises(RefusedError):
        rates.check("a")


def test_latencies_of_the_last_seconds():
    meter = Meter()
    for number in range(1, 101):
        meter.note("/recommend", 200, number / 1_000)
    recent = meter.recent()
    assert recent["p50"] == pytest.approx(51)
    assert recent["p99"] == pytest.approx(100)
    assert np.isfinite(recent["rate"])


def test_options_travel_to_the_server_s_process(tmp_path):
    options = Options(shop=str(tmp_path), items=tmp_path / "i.csv", limits=Limits(rate=3.0))
    assert Options.from_json(options.as_json()) == options
