"""What the service answers while its log cannot be written."""

import asyncio
import json

import pytest
from shops import catalogue, quick

from lser.online import LogRefusedError, Recommender
from lser.online.service.app import App
from lser.online.service.limits import Limits


async def ask(app, path, body):
    sent = []

    async def receive():
        return {"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": path, "headers": [], "client": ("c", 1)}
    await app(scope, receive, send)
    return sent[0]["status"], dict(sent[0]["headers"]), json.loads(sent[1]["body"])


def served(folder, story, limits=None):
    """Run a story against an application, from its start to its end."""
    settings = quick(window=1_000.0)
    recommender = Recommender(catalogue(), folder, settings=settings, learner="off")
    app = App(recommender, limits=limits)

    async def run():
        async with app._lifespan(app._rest):
            return await story(app, recommender)

    return asyncio.run(run())


def test_a_full_disk_answers_503_and_goes_on_when_there_is_room(tmp_path):
    async def story(app, recommender):
        status, _, page = await ask(app, "/recommend", {"id": "first"})
        assert status == 200
        connection = recommender.log._connection
        pages = connection.execute("pragma page_count").fetchone()[0]
        connection.execute(f"pragma max_page_count = {pages}")
        statuses = []
        for number in range(200):
            statuses.append(await ask(app, "/recommend", {"id": f"n{number}"}))
            if statuses[-1][0] != 200:
                break
        status, headers, answer = statuses[-1]
        assert status == 503
        assert headers[b"retry-after"] == b"1"
        assert "full" in answer["error"]
        assert await ask(app, "/recommend", {"id": "first"}) is not None
        connection.execute("pragma max_page_count = 1000000")
        again = await ask(app, "/recommend", {"id": f"n{len(statuses) - 1}"})
        assert again[0] == 200
        assert (await ask(app, "/recommend", {"id": "first"}))[2] == page
        return len(statuses)

    taken = served(tmp_path / "shop", story)
    from lser.online.sqlite_reader import SqliteReader

    reader = SqliteReader(tmp_path / "shop")
    assert len(list(reader.of_kind("decision"))) == taken + 1
    reader.close()


def test_a_log_that_does_not_answer_is_a_503_in_time(tmp_path):
    async def story(app, recommender):
        real = recommender.log.submit
        recommender.log.submit = lambda tasks: None
        status, _, answer = await ask(app, "/recommend", {"id": "a"})
        recommender.log.submit = real
        assert status == 503
        assert "did not answer within 0.1 s" in answer["error"]

    served(tmp_path / "shop", story, Limits(timeout=0.1))


def test_a_body_that_does_not_arrive_is_a_408(tmp_path):
    async def story(app, recommender):
        sent = []

        async def receive():
            await asyncio.sleep(10)

        async def send(message):
            sent.append(message)

        scope = {
            "type": "http",
            "method": "POST",
            "path": "/feedback",
            "headers": [],
            "client": None,
        }
        await app(scope, receive, send)
        assert sent[0]["status"] == 408

    served(tmp_path / "shop", story, Limits(timeout=0.1))


def test_a_closed_log_refuses(tmp_path):
    recommender = Recommender(catalogue(), tmp_path / "shop", settings=quick(), learner="off")
    recommender.close()
    with pytest.raises(LogRefusedError):
        recommender.recommend("u")
