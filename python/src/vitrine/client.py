"""The caller. Every call may be tried again, and is: a decision has an id before it is sent."""

from __future__ import annotations

import copy
import json
import os
import secrets
import threading
import time
import weakref
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing, closing
from typing import TYPE_CHECKING, Any

import anyio
import httpx

from vitrine.api import Answer, AsyncRoutes, DecideRequest, Message, Routes
from vitrine.attempts import Lines, Messages, Problem, Rules, addresses, decoded, plain

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

_STREAM_TIMEOUT = 45.0  # seconds: three times as long as the service keeps silent
_CALLS = 16  # at a time: for each, the pool of httpx looks at all that wait, and at all idle connections
_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=_CALLS)
_DIRECT = {f"all://{host}": None for host in ("localhost", "127.0.0.1", "[::1]")}  # whatever HTTP_PROXY says, as in Go
_FAILURES = (Problem, httpx.RequestError, json.JSONDecodeError, UnicodeDecodeError)  # the last two: a garbled answer
_LATE = "the answer has not come in time"
_NO_TURN = f"this client's other calls, {_CALLS} at a time, have taken all the time"


class _Caller:
    """What both clients do before and after a request."""

    def __init__(
        self,
        base: str = "http://127.0.0.1:8080",
        *,
        key: str = "",
        timeout: float = 10.0,
        patience: float = 30.0,
        read_your_writes: bool = False,
    ) -> None:
        """Calls the service at a URL, or at several with commas between them.

        key               the token of an API key
        timeout           seconds that an attempt may take. A Client cannot limit the resolution of a name, or headers that
                          trickle in; an AsyncClient does.
        patience          seconds from the first attempt to the beginning of the last; negative tries each address once
        read_your_writes  whether reads wait for what this client has written, whichever process answers. All addresses
                          must serve one log, and the client must not outlive it.

        Calls are tried again after connection errors, timeouts and the statuses 429, 502, 503 and 504, and nothing
        else. The wait is the service's Retry-After plus a delay drawn from [0, w], where w doubles from 50 ms to 5 s.
        These failures except 429 first send the call to the next address at once. Later calls begin with the address
        that has not failed. 16 calls are under way at a time, besides streams; others wait for their turn.
        """
        if not isinstance(key, str):
            raise TypeError(f"key {key!r}: must be the token of an API key, or left out: is the variable set that holds it?")
        if timeout is None or patience is None:
            raise TypeError("timeout and patience: must be numbers of seconds, not None")
        if any(not "!" <= c <= "~" for c in key):
            raise ValueError("key has a character that no token has, perhaps a line break at its end")
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._rules = Rules(addresses(base), min(timeout, threading.TIMEOUT_MAX), patience)
        self._read_your_writes = read_your_writes
        self._open()
        _callers.add(self)

    def _open(self) -> None:
        raise NotImplementedError

    def _arguments(self, method: str, query: dict[str, Any], headers: dict[str, Any], body: Any) -> dict[str, Any]:
        if method == "GET" and self._read_your_writes and self._rules.state.wrote:
            query = {"entry": self._rules.state.wrote, **{k: v for k, v in query.items() if v is not None}}
        given: dict[str, Any] = {
            "params": {k: plain(v) if hasattr(v, "tolist") else v for k, v in query.items() if v is not None} or None,
            "headers": self._headers | {k: str(v) for k, v in headers.items() if v is not None},
        }
        if body is not None:
            given["content"] = json.dumps(body, default=plain, ensure_ascii=False).encode()  # the service says where a NaN is
            given["headers"]["Content-Type"] = "application/json"
        return given

    def _patience_for_turn(self, seconds: float) -> float:
        return seconds if self._rules.hurried else min(max(seconds, self._rules.patience), threading.TIMEOUT_MAX)

    def _within(self, seconds: float | None, fallback: object) -> Self:
        """This caller, in a hurry if there is a time or a fallback."""
        if isinstance(fallback, str):
            raise TypeError(f"fallback {fallback!r}: must be a list of item ids")
        if seconds is None and fallback is None:
            return self
        hurried = copy.copy(self)
        hurried._rules = copy.copy(self._rules)
        hurried._rules.patience, hurried._rules.hurried = 1.0 if seconds is None else seconds, True
        return hurried


_callers: weakref.WeakSet[_Caller] = weakref.WeakSet()


def _forked() -> None:
    """Leaves a parent its connections: of one that both use, each reads the other's answers."""
    for caller in _callers:
        caller._open()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def _page(answer: Answer) -> Answer:
    if not isinstance(answer, dict) or "assortment" not in answer:
        raise json.JSONDecodeError("the answer is no page: is it from a decision service?", str(answer), 0)
    return answer


def _fallback(failure: Exception, items: Sequence[str] | None) -> Answer:
    """A page of these items, unless the failure is the caller's own mistake."""
    if items is None or (isinstance(failure, Problem) and failure.status < 500 and not failure.away):
        raise failure
    return {
        "decision_id": "",
        "assortment": [{"id": item, "position": i + 1, "choice_probability": None} for i, item in enumerate(items)],
        "outside_probability": None,
        "expected_revenue": None,
        "propensity": None,
        "policy_entry": 0,
    }


def _of_fallback(method: str, path: str) -> bool:
    """Whether a report is about a page that the service does not know."""
    return method == "POST" and "/decisions//" in path


class _Timed(httpx.SyncByteStream):
    """A body that must end by a deadline: the timeouts of httpx are for each read."""

    def __init__(self, body: Any, deadline: float) -> None:
        self._body, self._deadline = body, deadline

    def __iter__(self) -> Iterator[bytes]:
        for part in self._body:
            if time.monotonic() > self._deadline:
                raise httpx.ReadTimeout(_LATE)
            yield part

    def close(self) -> None:
        self._body.close()


class Client(_Caller, Routes):
    """Calls a decision service. It may be used by several threads, and closes its connections as a context manager.

    >>> with vitrine.serve() as service, Client(service.url) as client:
    ...     shop = client.put_placement("shop", max_size=2, features=[{"name": "price", "kind": "number"}])
    ...     page = client.decide("shop", items=[{"id": "a", "features": {"price": 1.2}}, {"id": "b", "features": {"price": 0.7}}])
    ...     client.outcome("shop", page["decision_id"], choice="b")
    ...     client.get_decision("shop", page["decision_id"])["choice"]
    'b'
    """

    def _open(self) -> None:
        self._http = httpx.Client(limits=_LIMITS, mounts=_DIRECT)
        self._turns = threading.BoundedSemaphore(_CALLS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def decide(self, name: str, /, *, fallback: Sequence[str] | None = None, within: float | None = None, **body: Unpack[DecideRequest]) -> Answer:
        """Decide which items to show. Without a decision_id the client makes one, so that retries are one decision.

        If the service is away or fails, or does not answer within about so many seconds (one by default), the page is the
        fallback: item ids, which get an empty decision_id. Reports about such a page, such as outcome, do nothing.
        Without a fallback, within only limits the patience.
        """
        body["decision_id"] = body.get("decision_id") or secrets.token_urlsafe(16)
        try:
            return _page(Routes.decide(self._within(within, fallback), name, **body))
        except _FAILURES as failure:
            return _fallback(failure, fallback)

    def request(self, method: str, path: str, *, query: dict[str, Any] | None = None, headers: dict[str, Any] | None = None, body: Any = None) -> httpx.Response:
        """Sends any request by the same rules, for what the routes do not return, such as an ETag."""
        return self._send(method, path, query or {}, headers or {}, body)

    def _call(self, method: str, path: str, query: dict[str, Any], headers: dict[str, Any], body: Any = None, wanted: str = "application/json") -> Any:
        return None if _of_fallback(method, path) else decoded(self._send(method, path, query, headers, body), wanted)

    def _send(self, method: str, path: str, query: dict[str, Any], headers: dict[str, Any], body: Any = None, stream: bool = False) -> httpx.Response:
        given = self._arguments(method, query, headers, body)
        attempts = self._rules.attempts(method)
        answer: httpx.Response | httpx.TransportError | None = None
        while True:
            try:
                base, seconds = attempts.send(answer)
            except StopIteration as end:
                good: httpx.Response = end.value
                return good
            if not base:
                time.sleep(seconds)
                answer = None
                continue
            request = self._http.build_request(method, base + path, timeout=_STREAM_TIMEOUT if stream else seconds, **given)
            try:
                answer = self._http.send(request, stream=True) if stream else self._in_turn(request, seconds)
                if not answer.is_success:
                    answer.read()
            except httpx.TransportError as failure:
                answer = failure

    def _in_turn(self, request: httpx.Request, seconds: float) -> httpx.Response:
        if not self._turns.acquire(timeout=self._patience_for_turn(seconds)):
            raise httpx.PoolTimeout(_NO_TURN)
        try:
            deadline = time.monotonic() + seconds
            with closing(self._http.send(request, stream=True)) as answer:
                answer.stream = _Timed(answer.stream, deadline)
                answer.read()
            return answer
        finally:
            self._turns.release()

    def _events(self, path: str, query: dict[str, Any], headers: dict[str, Any]) -> Iterator[Message]:
        messages = Messages()
        with closing(self._send("GET", path, query, headers, stream=True)) as answer:
            for part in answer.iter_text():
                yield from messages.add(part)

    def _lines(self, path: str, query: dict[str, Any], headers: dict[str, Any]) -> Iterator[Any]:
        split = Lines()
        with closing(self._send("GET", path, query, headers, stream=True)) as answer:
            for part in answer.iter_text():
                for line in split.add(part):
                    yield json.loads(line)


class AsyncClient(_Caller, AsyncRoutes):
    """Client for asyncio and trio, with the same arguments and methods."""

    def _open(self) -> None:
        self._http = httpx.AsyncClient(limits=_LIMITS, mounts=_DIRECT)
        self._turns = anyio.Semaphore(_CALLS)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def decide(self, name: str, /, *, fallback: Sequence[str] | None = None, within: float | None = None, **body: Unpack[DecideRequest]) -> Answer:
        body["decision_id"] = body.get("decision_id") or secrets.token_urlsafe(16)
        try:
            return _page(await AsyncRoutes.decide(self._within(within, fallback), name, **body))
        except _FAILURES as failure:
            return _fallback(failure, fallback)

    decide.__doc__ = Client.decide.__doc__

    async def request(self, method: str, path: str, *, query: dict[str, Any] | None = None, headers: dict[str, Any] | None = None, body: Any = None) -> httpx.Response:
        """Sends any request by the same rules, for what the routes do not return, such as an ETag."""
        return await self._send(method, path, query or {}, headers or {}, body)

    async def _call(self, method: str, path: str, query: dict[str, Any], headers: dict[str, Any], body: Any = None, wanted: str = "application/json") -> Any:
        return None if _of_fallback(method, path) else decoded(await self._send(method, path, query, headers, body), wanted)

    async def _send(self, method: str, path: str, query: dict[str, Any], headers: dict[str, Any], body: Any = None, stream: bool = False) -> httpx.Response:
        given = self._arguments(method, query, headers, body)
        attempts = self._rules.attempts(method)
        answer: httpx.Response | httpx.TransportError | None = None
        while True:
            try:
                base, seconds = attempts.send(answer)
            except StopIteration as end:
                good: httpx.Response = end.value
                return good
            if not base:
                await anyio.sleep(seconds)
                answer = None
                continue
            request = self._http.build_request(method, base + path, timeout=_STREAM_TIMEOUT if stream else seconds, **given)
            try:
                answer = await (self._http.send(request, stream=True) if stream else self._in_turn(request, seconds))
                if not answer.is_success:
                    await answer.aread()
            except httpx.TransportError as failure:
                answer = failure

    async def _in_turn(self, request: httpx.Request, seconds: float) -> httpx.Response:
        with anyio.move_on_after(self._patience_for_turn(seconds)) as waiting:
            await self._turns.acquire()
        if waiting.cancelled_caught:
            raise httpx.PoolTimeout(_NO_TURN)
        try:
            with anyio.move_on_after(seconds):
                return await self._http.send(request)
            raise httpx.ReadTimeout(_LATE)
        finally:
            self._turns.release()

    async def _events(self, path: str, query: dict[str, Any], headers: dict[str, Any]) -> AsyncIterator[Message]:
        messages = Messages()
        async with aclosing(await self._send("GET", path, query, headers, stream=True)) as answer:
            async for part in answer.aiter_text():
                for event in messages.add(part):
                    yield event

    async def _lines(self, path: str, query: dict[str, Any], headers: dict[str, Any]) -> AsyncIterator[Any]:
        split = Lines()
        async with aclosing(await self._send("GET", path, query, headers, stream=True)) as answer:
            async for part in answer.aiter_text():
                for line in split.add(part):
                    yield json.loads(line)
