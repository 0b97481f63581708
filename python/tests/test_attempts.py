"""The rules of retries: the table is that of TestAddresses in service/client/addresses_test.go."""

import pickle
import socket
import ssl
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from decimal import Decimal
from typing import Any

import anyio
import httpx
import numpy
import pytest

import vitrine


class Hosts:
    """Hosts that answer by their names, on a clock of their own."""

    def __init__(self, **does: Callable[[httpx.Request], httpx.Response]) -> None:
        self.does, self.now = does, 100.0
        self.asked, self.bodies = "", set[bytes]()
        self.came: list[float] = []

    def handle(self, request: httpx.Request) -> httpx.Response:
        self.asked += request.url.host
        self.came.append(self.now - 100)
        self.bodies.add(request.content)
        try:
            return self.does[request.url.host](request)
        except httpx.TimeoutException:
            self.now += request.extensions["timeout"]["read"]
            raise

    async def handle_async(self, request: httpx.Request) -> httpx.Response:
        return self.handle(request)

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def answers(status: int, **headers: str) -> Callable[[httpx.Request], httpx.Response]:
    document = {"type": "urn:vitrine:problem:full", "title": "", "status": status, "detail": "d", "request_id": ""}
    given = {k.replace("_", "-"): v for k, v in headers.items()} | {"Content-Type": "application/problem+json"}
    return lambda _: httpx.Response(status, json=document, headers=given)


def good(_: httpx.Request) -> httpx.Response:
    return httpx.Response(201, json={"decision_id": "d", "assortment": []})


def garbled(content: bytes, coding: str = "identity", status: int = 201, kind: str = "application/json") -> Callable[[httpx.Request], httpx.Response]:
    headers = {"Content-Type": kind, "Content-Encoding": coding}
    return lambda _: httpx.Response(status, stream=httpx.ByteStream(content), headers=headers)


def garbled_problem(content: bytes) -> Callable[[httpx.Request], httpx.Response]:
    return garbled(content, status=503, kind="application/problem+json")


def raises(failure: type[httpx.TransportError], cause: Exception | None = None) -> Callable[[httpx.Request], httpx.Response]:
    def do(_: httpx.Request) -> httpx.Response:
        raise failure("failed") from cause

    return do


refuses = raises(httpx.ConnectError, ConnectionRefusedError())
hangs = raises(httpx.ReadTimeout)
no_name = raises(httpx.ConnectError, socket.gaierror(socket.EAI_NONAME, "no name"))
bad_certificate = raises(httpx.ConnectError, ssl.SSLCertVerificationError("expired"))


def ask(hosts: Hosts, asynchronous: bool, monkeypatch: pytest.MonkeyPatch, base: str = "http://a, http://b/,http://c", **settings: Any) -> Callable[..., Any]:
    """A function that decides by a client of the hosts."""
    settings = {"timeout": 3, "patience": 5} | settings

    async def sleep(seconds: float) -> None:
        hosts.sleep(seconds)

    monkeypatch.setattr(time, "sleep", hosts.sleep)
    monkeypatch.setattr(anyio, "sleep", sleep)
    client = (vitrine.AsyncClient if asynchronous else vitrine.Client)(base, **settings)
    client._rules.clock, client._rules.jitter = lambda: hosts.now, lambda: 0.0
    if isinstance(client, vitrine.AsyncClient):
        client._http = httpx.AsyncClient(transport=httpx.MockTransport(hosts.handle_async))
        decide = client.decide
        return lambda **body: anyio.run(lambda: decide("home", **body))
    client._http = httpx.Client(transport=httpx.MockTransport(hosts.handle))
    return lambda **body: client.decide("home", **body)


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(
    ("a", "b", "c", "asked", "came", "wrong", "then"),
    [
        (good, good, good, "a", [0], None, "a"),
        (refuses, good, good, "ab", [0, 0], None, "b"),
        (refuses, refuses, good, "abc", [0, 0, 0], None, "c"),
        (answers(503, Retry_After="9"), good, good, "ab", [0, 0], None, "b"),
        (answers(502), answers(504), good, "abc", [0, 0, 0], None, "c"),
        (hangs, good, good, "ab", [0, 3], None, "b"),
        (no_name, bad_certificate, good, "abc", [0, 0, 0], None, "c"),
        (no_name, bad_certificate, no_name, "abc", [0, 0, 0], httpx.ConnectError, "abc"),
        (answers(409), good, good, "a", [0], vitrine.Problem, "a"),
        (answers(429, Retry_After="3"), good, good, "aa", [0, 3], vitrine.Problem, "aa"),
        (answers(503, Retry_After="4"), answers(503, Retry_After="3"), no_name, "abcabc", [0, 0, 0, 3, 3, 3], httpx.ConnectError, "abcabc"),
        (hangs, hangs, hangs, "ab", [0, 3], httpx.ReadTimeout, "ca"),
        (garbled_problem(b"[]"), garbled_problem(b'{"a'), good, "abc", [0, 0, 0], None, "c"),
    ],
)
def test_addresses(
    monkeypatch: pytest.MonkeyPatch, asynchronous: bool, a: Any, b: Any, c: Any, asked: str, came: list[float], wrong: type[Exception] | None, then: str
) -> None:
    hosts = Hosts(a=a, b=b, c=c)
    decide = ask(hosts, asynchronous, monkeypatch)
    if wrong:
        with pytest.raises(wrong):
            decide()
    else:
        decide()
    assert (hosts.asked, hosts.came, len(hosts.bodies)) == (asked, came, 1)
    hosts.asked = ""
    with suppress(vitrine.Problem, httpx.TransportError):
        decide()
    assert hosts.asked.startswith(then)


def test_once(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = Hosts(a=refuses, b=answers(503), c=refuses)
    with pytest.raises(httpx.ConnectError):
        ask(hosts, False, monkeypatch, patience=-1)()
    assert hosts.asked == "abc"


@pytest.mark.parametrize("asynchronous", [False, True])
def test_fallback(monkeypatch: pytest.MonkeyPatch, asynchronous: bool) -> None:
    """A page comes within the time that the caller gives, but not for the caller's own mistakes."""
    hosts = Hosts(a=hangs, b=refuses, c=answers(503))
    decide = ask(hosts, asynchronous, monkeypatch, patience=30)
    page = decide(fallback=["x", "y"], within=0.5)
    assert [shown["id"] for shown in page["assortment"]] == ["x", "y"]
    assert page["decision_id"] == ""
    assert hosts.now < 100.6
    hosts.does["b"] = answers(500)
    assert decide(fallback=["x"])["decision_id"] == ""
    bodies = [b'{"decision_id', b'{"a":"\xff"}', b"{}", b"[]", b"null", b""]
    for answer in [*map(garbled, bodies), garbled(b"{}", "gzip"), garbled(b"", kind=""), lambda _: httpx.Response(204)]:
        hosts.does["b"] = answer
        assert decide(fallback=["x"])["decision_id"] == ""
    hosts.does["a"] = answers(422)
    hosts.does["b"] = answers(422)
    with pytest.raises(vitrine.Problem, match="422 full: d"):
        decide(fallback=["x"])


@pytest.mark.parametrize("asynchronous", [False, True])
def test_slow_answers(asynchronous: bool) -> None:
    """A server that sends a byte now and then does not hold a call up."""

    def parts(_: httpx.Request) -> httpx.Response:
        def content() -> Iterator[bytes]:
            for byte in good(_).content:
                time.sleep(0.02)
                yield bytes([byte])

        return httpx.Response(201, content=content(), headers={"Content-Type": "application/json"})

    async def chunks(_: httpx.Request) -> httpx.Response:
        async def content() -> AsyncIterator[bytes]:
            for byte in good(_).content:
                await anyio.sleep(0.02)
                yield bytes([byte])

        return httpx.Response(201, content=content(), headers={"Content-Type": "application/json"})

    async def late() -> None:
        async with vitrine.AsyncClient(timeout=0.1, patience=-1) as client:
            client._http = httpx.AsyncClient(transport=httpx.MockTransport(chunks))
            assert (await client.decide("home", fallback=["x"], within=0.1))["decision_id"] == ""
            with pytest.raises(httpx.ReadTimeout):
                await client.decide("home")

    if asynchronous:
        anyio.run(late)
        return
    with vitrine.Client(timeout=0.1, patience=-1) as client:
        client._http = httpx.Client(transport=httpx.MockTransport(parts))
        assert client.decide("home", fallback=["x"], within=0.1)["decision_id"] == ""
        with pytest.raises(httpx.ReadTimeout):
            client.decide("home")


def test_problems_cross_processes() -> None:
    problem = vitrine.Problem(answers(409)(httpx.Request("GET", "http://a")))
    copied = pickle.loads(pickle.dumps(problem))
    assert str(copied) == str(problem)
    assert (copied.status, copied.kind, copied.detail, copied.document, copied.away) == (409, "full", "d", problem.document, False)


def test_read_your_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    queries: list[str] = []
    entries = iter(["7", "12", "9", "", "x"])

    def handle(request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            queries.append(request.url.query.decode())
            return httpx.Response(200, json={})
        return httpx.Response(204, headers={"Vitrine-Entry": next(entries)})

    with vitrine.Client(read_your_writes=True) as client:
        client._http = httpx.Client(transport=httpx.MockTransport(handle))
        for _ in range(5):
            client.outcome("home", "d", choice=None)
            client.list_items("home", limit=5)
    assert queries == ["entry=7&limit=5"] + ["entry=12&limit=5"] * 4


def test_lost_delete(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever deletes again what an earlier attempt has deleted has deleted it."""
    gone = {"type": "urn:vitrine:problem:not-found", "detail": ""}
    said = iter([httpx.Response(504), httpx.Response(404, json=gone, headers={"Content-Type": "application/problem+json"})])
    monkeypatch.setattr(time, "sleep", lambda _: None)
    with vitrine.Client() as client:
        client._http = httpx.Client(transport=httpx.MockTransport(lambda _: next(said)))
        client.delete_placement("home")


def test_parameters_of_numpy() -> None:
    with vitrine.Client() as client:
        assert client._arguments("PUT", {"reset": numpy.bool_(True)}, {}, None)["params"]["reset"] is True


def test_not_modified() -> None:
    """A caller that names the ETag it has gets None while nothing has changed."""
    with vitrine.Client() as client:
        client._http = httpx.Client(transport=httpx.MockTransport(lambda r: httpx.Response(304 if r.headers["If-None-Match"] == '"1"' else 500)))
        assert client.get_placement("home", if_none_match='"1"') is None


STREAMS = {
    "/v1/events": 'id: 7\nevent: offered\ndata: {"shown":["a\u2028b\x85c"]}\n\n: still here\n\n',
    "/v1/placements/home/export": '{"id":"a\u2028b"}\n{"id":"\u2029"}\n',
}


def parts(request: httpx.Request) -> list[bytes]:
    """The stream of a path, one byte in each part."""
    return [bytes([b]) for b in STREAMS[request.url.path].encode()]


def test_streams_with_other_line_breaks() -> None:
    """Items may have names with the line breaks of Unicode, which JSON does not escape."""
    event, decisions = (7, "offered", {"shown": ["a\u2028b\x85c"]}), [{"id": "a\u2028b"}, {"id": "\u2029"}]
    with vitrine.Client() as client:
        client._http = httpx.Client(transport=httpx.MockTransport(lambda r: httpx.Response(200, content=iter(parts(r)))))
        events: list[object] = list(client.events())
        assert events == [event]
        assert list(client.export("home")) == decisions

    async def chunks(request: httpx.Request) -> AsyncIterator[bytes]:
        for part in parts(request):
            yield part

    async def both() -> None:
        client = vitrine.AsyncClient()
        client._http = httpx.AsyncClient(transport=httpx.MockTransport(lambda r: httpx.Response(200, content=chunks(r))))
        events: list[object] = [e async for e in client.events()]
        assert events == [event]
        assert [d async for d in client.export("home")] == decisions

    anyio.run(both)


def test_turns() -> None:
    """However many calls there are, few are under way; a call in a hurry does not wait for its turn."""
    under_way: list[int] = []
    held = threading.Event()

    def decide(_: httpx.Request) -> httpx.Response:
        under_way.append(len(under_way))
        held.wait(10)
        return good(_)

    with vitrine.Client() as client, ThreadPoolExecutor(40) as pool:
        client._http = httpx.Client(transport=httpx.MockTransport(decide))
        pages = [pool.submit(client.decide, "home") for _ in range(40)]
        while len(under_way) < 16:
            time.sleep(0.001)
        assert client.decide("home", fallback=["x"], within=0.1)["decision_id"] == ""
        assert len(under_way) == 16
        held.set()
        assert [page.result()["decision_id"] for page in pages] == ["d"] * 40

    async def all() -> None:
        now = most = 0
        free = anyio.Event()

        async def decide(request: httpx.Request) -> httpx.Response:
            nonlocal now, most
            now += 1
            most = max(most, now)
            await free.wait()
            now -= 1
            return good(request)

        async with vitrine.AsyncClient() as client, anyio.create_task_group() as tasks:
            client._http = httpx.AsyncClient(transport=httpx.MockTransport(decide))
            for _ in range(40):
                tasks.start_soon(client.decide, "home")
            await anyio.wait_all_tasks_blocked()
            assert (await client.decide("home", fallback=["x"], within=0.1))["decision_id"] == ""
            assert now == 16
            free.set()
        assert (now, most) == (0, 16)

    anyio.run(all)


def test_mistakes() -> None:
    for base in ["http://x,", ",", "http://x,y:8080", "ftp://x", "http://x?key=y"]:
        with pytest.raises(ValueError, match="must be a URL such as"):
            vitrine.Client(base)
    with pytest.raises(ValueError, match="line break"):
        vitrine.Client(key="token\n")
    wrong: Any = None
    with pytest.raises(TypeError, match="key None: must be the token of an API key"):
        vitrine.Client(key=wrong)
    for setting in ("timeout", "patience"):
        with pytest.raises(TypeError, match=f"{setting}.* must be numbers of seconds"):
            vitrine.Client(**{setting: wrong})
    with vitrine.Client() as client:
        client._http = httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(200, html="<p>")))
        with pytest.raises(ValueError, match="is it a decision service"):
            client.list_placements()
        assert client.experiment_report("home", "7") == "<p>"
        client._http = httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(200)))
        with pytest.raises(ValueError, match="is it a decision service"):
            client.decide("home")
        with pytest.raises(ValueError, match="is no name in a URL"):
            client.delete_item("home", "..")  # would delete the placement
        for name in (None, 5):
            wrong = name
            with pytest.raises(ValueError, match=f"{name}: is no name in a URL"):
                client.decide(wrong, fallback=["x"])
        wrong = "ab"
        with pytest.raises(TypeError, match="fallback 'ab': must be a list of item ids"):
            client.decide("home", fallback=wrong)
        client._http = httpx.Client(transport=httpx.MockTransport(garbled(b'{"placements": []}', kind="Application/JSON; charset=utf-8")))
        assert client.list_placements() == {"placements": []}
        with pytest.raises(TypeError, match="Decimal"):
            client.put_items("home", items=[{"id": "a", "revenue": Decimal(1)}])  # type: ignore[typeddict-item]
