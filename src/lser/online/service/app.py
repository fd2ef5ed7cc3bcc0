"""The HTTP service. The two routes of the traffic are plain ASGI, the rest is Starlette."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from lser import __version__
from lser.online.desk import ConflictError
from lser.online.items import remove_body
from lser.online.log import Entry, LogRefusedError
from lser.online.recommender import Recommender
from lser.online.service import live, requests
from lser.online.service.committer import Committer
from lser.online.service.limits import Limits, Rates, RefusedError, Tokens
from lser.online.service.metrics import Meter, exposition
from lser.online.service.openapi import document

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
logger = logging.getLogger("lser")
_JSON = [(b"content-type", b"application/json")]


class App:
    """The ASGI application of one recommender, which it closes at the end."""

    def __init__(
        self,
        recommender: Recommender,
        *,
        tokens: Tokens | None = None,
        limits: Limits | None = None,
        title: str = "lser",
    ) -> None:
        """Serve `recommender`."""
        self.recommender = recommender
        self.tokens, self.limits = tokens or Tokens(), limits or Limits()
        self.title, self.meter = title, Meter()
        self.stopping: Callable[[], bool] = lambda: False
        self._rates = Rates(self.limits.rate)
        self._description = orjson.dumps(document(__version__, self.limits))
        self._traffic = {
            "/recommend": self._recommend,
            "/feedback": self._feedback,
        }
        self._rest = Starlette(routes=self._routes(), lifespan=self._lifespan)

    @asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        self._committer = Committer(self.recommender.log, self.limits.timeout)
        yield
        await asyncio.to_thread(self.recommender.close)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the application's start and end."""
        if scope["type"] != "http":
            await self._rest(scope, receive, send)  # type: ignore[arg-type]  # Starlette's aliases
            return
        began = time.perf_counter()
        path = scope["path"]
        status = 500
        try:
            handler = self._traffic.get(path) if scope["method"] == "POST" else None
            if handler is None:
                status = await self._other(scope, receive, send)
            else:
                self._admit(scope, admin=False)
                answer = await handler(await self._body(receive))
                status = 200
                await _answer(send, 200, answer)
        except RefusedError as refused:
            status = refused.status
            await _answer(send, status, {"error": refused.reason}, refused.headers)
        except ConflictError as error:
            status = 409
            await _answer(send, status, {"error": str(error)})
        except LogRefusedError as error:
            status = 503
            await _answer(send, status, {"error": str(error)}, {"Retry-After": "1"})
        route = path if path in self._traffic else "other"
        self.meter.note(route, status, time.perf_counter() - began)

    async def _other(self, scope: Scope, receive: Receive, send: Send) -> int:
        status = 500

        async def watched(message: dict[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        await self._rest(scope, receive, watched)  # type: ignore[arg-type]  # Starlette's aliases
        return status

    def _admit(self, scope: Scope, *, admin: bool) -> None:
        client = scope.get("client")
        self._rates.check(client[0] if client else "")
        if self.tokens.admin:
            headers = dict(scope["headers"])
            given = headers.get(b"authorization", b"").decode("latin-1")
            self.tokens.check(given, admin=admin)

    async def _body(self, receive: Receive) -> bytes:
        try:
            async with asyncio.timeout(self.limits.timeout):
                return await self._gather(receive)
        except TimeoutError:
            raise RefusedError(408, "the body did not arrive in time") from None

    async def _gather(self, receive: Receive) -> bytes:
        parts, size = [], 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise RefusedError(400, "the client went away")
            part = message.get("body", b"")
            size += len(part)
            if size > self.limits.body:
                raise RefusedError(413, f"the body has more than {self.limits.body} bytes")
            parts.append(part)
            if not message.get("more_body", False):
                return b"".join(parts)

    async def _recommend(self, body: bytes) -> dict[str, Any]:
        asked = requests.recommend(self.recommender, body, self.limits)
        receipts = await self._committer.append((asked.entry,))
        page = self.recommender.desk.page(receipts[0], asked)
        return {
            "id": page.id,
            "items": page.items,
            "propensities": page.propensities,
            "arm": page.arm,
            "policy": page.policy,
            "session": page.session,
        }

    async def _feedback(self, body: bytes) -> dict[str, Any]:
        entries, _ = requests.feedback(self.recommender, body, self.limits)
        if not entries:
            return {"new": 0}
        receipts = await self._committer.append(entries)
        return {"new": sum(receipt.new for receipt in receipts)}

    # everything else

    def _routes(self) -> list[Route]:
        async def page(_request: Request) -> Response:
            return HTMLResponse(live.page(self.title), headers=live.PAGE_HEADERS)

        async def description(_request: Request) -> Response:
            return Response(self._description, media_type="application/json")

        async def alive(_request: Request) -> Response:
            return _json({"live": True})

        return [
            Route("/", page),
            Route("/openapi.json", description),
            Route("/health/live", alive),
            Route("/health/ready", self._guard(self._ready, open_to_all=True)),
            Route("/metrics", self._guard(self._metrics)),
            Route("/live", self._guard(self._live)),
            Route("/policies", self._guard(self._policies)),
            Route(
                "/policies/{arm}/{version:int}/{action}",
                self._guard(self._release, admin=True),
                methods=["POST"],
            ),
            Route("/items", self._guard(self._list_items)),
            Route("/items", self._guard(self._put_items), methods=["PUT"]),
            Route("/items/{id:path}", self._guard(self._get_item)),
            Route("/items/{id:path}", self._guard(self._put_items), methods=["PUT"]),
            Route("/items/{id:path}", self._guard(self._delete_item), methods=["DELETE"]),
        ]

    def _guard(
        self,
        handler: Callable[[Request], Awaitable[Response]],
        *,
        admin: bool = False,
        open_to_all: bool = False,
    ) -> Callable[[Request], Awaitable[Response]]:
        """A handler behind tokens and rates, whose refusals are answers."""

        async def guarded(request: Request) -> Response:
            try:
                if not open_to_all:
                    self._admit(dict(request.scope), admin=admin)
                return await handler(request)
            except RefusedError as refused:
                return _json({"error": refused.reason}, refused.status, refused.headers)
            except LogRefusedError as error:
                return _json({"error": str(error)}, 503, {"Retry-After": "1"})
            except ValueError as error:
                return _json({"error": str(error)}, 422)

        return guarded

    async def _ready(self, _request: Request) -> Response:
        entry = Entry("tick", None, b"{}")
        await self._committer.append((entry,))
        return _json({"ready": True, "items": len(self.recommender.books.items)})

    async def _metrics(self, _request: Request) -> Response:
        recommender = self.recommender
        learner = recommender.keeper.learner
        text = exposition(self.meter, recommender.log, recommender.books, learner)
        return Response(text, media_type="text/plain; version=0.0.4")

    async def _live(self, request: Request) -> Response:
        once = request.query_params.get("once")
        if once:
            return _json(live.snapshot(self.recommender, self.meter))

        async def feed() -> AsyncIterator[bytes]:
            while not self.stopping() and not await request.is_disconnected():
                state = live.snapshot(self.recommender, self.meter)
                yield b"data: " + orjson.dumps(state) + b"\n\n"
                await asyncio.sleep(1.0)

        headers = {"Cache-Control": "no-store"}
        return StreamingResponse(feed(), media_type="text/event-stream", headers=headers)

    async def _policies(self, _request: Request) -> Response:
        return _json(live.policies(self.recommender.books))

    async def _release(self, request: Request) -> Response:
        arm, version = request.path_params["arm"], request.path_params["version"]
        match request.path_params["action"]:
            case "promote":
                await asyncio.to_thread(self.recommender.promote, arm, version)
            case "rollback":
                await asyncio.to_thread(self.recommender.rollback, arm, version)
            case _:
                raise RefusedError(404, "promote or rollback")
        return _json({"new": 1})

    async def _list_items(self, request: Request) -> Response:
        items = self.recommender.books.items
        try:
            after = int(request.query_params.get("after", "-1"))
            limit = min(max(int(request.query_params.get("limit", "100")), 1), 1_000)
        except ValueError:
            raise RefusedError(422, "after and limit must be whole numbers") from None
        with items.lock:
            rows: list[int] = []
            row = max(after + 1, 0)
            while row < items.rows and len(rows) < limit:
                if items.live[row]:
                    rows.append(row)
                row += 1
            listed = [live.item(items, row) for row in rows]
        return _json({"items": listed, "count": len(items), "next": rows[-1] if rows else None})

    async def _get_item(self, request: Request) -> Response:
        items = self.recommender.books.items
        row = items.row.get(request.path_params["id"])
        if row is None:
            raise RefusedError(404, "there is no such item")
        return _json(live.item(items, row))

    async def _put_items(self, request: Request) -> Response:
        body = await self._body(request.receive)  # type: ignore[arg-type]  # Starlette's aliases
        put = requests.put_items(body, self.limits, request.path_params.get("id"))
        entries = await asyncio.to_thread(self.recommender.desk.item_changes, *put)
        if entries:
            await self._committer.append(entries)
            self.recommender.keeper.wake()
        return _json({"new": len(put.ids)})

    async def _delete_item(self, request: Request) -> Response:
        id = request.path_params["id"]
        if id not in self.recommender.books.items.row:
            raise RefusedError(404, "there is no such item")
        entry = Entry("items", None, remove_body([id]))
        await self._committer.append((entry,))
        return _json({"new": 1})


def _json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(orjson.dumps(value), status, headers, "application/json")


async def _answer(
    send: Send, status: int, value: Any, headers: dict[str, str] | None = None
) -> None:
    body = orjson.dumps(value)
    pairs = [*_JSON, (b"content-length", b"%d" % len(body))]
    for name, text in (headers or {}).items():
        pairs.append((name.lower().encode(), text.encode()))
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})
