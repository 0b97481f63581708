"""The clients against a real service."""

import math
import os
import re
import signal
import subprocess
from typing import Any

import anyio
import httpx
import pandas
import pytest

import vitrine
from vitrine.api import CatalogueItem, Feature


def price() -> list[Feature]:
    return [{"name": "price", "kind": "number"}]


ITEMS: list[CatalogueItem] = [{"id": f"sku{i}", "features": {"price": i / 2}, "revenue": 1 + i} for i in range(4)]


def test_routes(client: vitrine.Client) -> None:
    """There is a method for each route of the document, and no other."""
    ids = set()
    for methods in client.request("GET", "/openapi.json").json()["paths"].values():
        ids |= {operation["operationId"] for operation in methods.values()}
    names = {re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", i).lower() for i in ids}
    for kind in (vitrine.api.Routes, vitrine.api.AsyncRoutes):
        assert {name for name in vars(kind) if not name.startswith("_")} == names


def test_a_day(client: vitrine.Client) -> None:
    assert client.put_placement("day", max_size=2, features=price(), min_size=2)["max_size"] == 2
    client.put_items("day", items=ITEMS)
    page = client.decide("day", candidates=["sku1", "sku2", "sku3"])
    assert len(page["assortment"]) == 2
    assert client.decide("day", candidates=["sku1", "sku2", "sku3"], decision_id=page["decision_id"]) == page
    taken = page["assortment"][0]["id"]
    client.outcome("day", page["decision_id"], choice=taken)
    client.correct("day", page["decision_id"], id="return-1", item=taken)
    assert client.get_decision("day", page["decision_id"])["status"] == "chosen"
    assert client.list_items("day", limit=2)["items"][0]["id"] == "sku0"
    assert [found["item"]["id"] for found in client.shelf("day", id=["sku3", "sku1"])["items"]] == ["sku3", "sku1"]
    etag = client.request("GET", "/v1/placements/day").headers["ETag"]
    client.put_placement("day", if_match=etag, **client.get_placement("day"))
    config = client.get_placement("day")
    config["attribution_window"] = "1h"
    with pytest.raises(vitrine.Problem) as problem:
        client.put_placement("day", if_match='"0"', **config)
    assert (problem.value.status, problem.value.kind) == (412, "precondition")
    with pytest.raises(vitrine.Problem) as problem:
        client.decide("day", fallback=["sku1"], max_size=-1)
    assert problem.value.document["errors"][0]["pointer"] == "#/max_size"
    assert [line["decision_id"] for line in client.export("day")] == [page["decision_id"]]
    for event in client.events(placement="day", last_event_id=0):
        if event.kind == "offered":
            break
    assert event.data["decision_id"] == page["decision_id"]
    client.delete_placement("day")


def test_numbers_of_frames(client: vitrine.Client) -> None:
    """The service takes numpy's numbers and the columns of frames, and says where a NaN is."""
    client.put_placement("frames", max_size=2, features=price())
    frame = pandas.DataFrame({"id": ["a", "b"], "price": [1, 2]})
    for prices in (frame["price"], frame["price"].astype("float32")):
        page = client.decide("frames", items=[{"id": i, "features": {"price": p}} for i, p in zip(frame["id"], prices.to_numpy(), strict=True)])
        assert len(page["assortment"]) == 2
        page = client.decide("frames", items=[{"id": i, "features": {"price": 1}} for i in "abc"], exclude=frame["id"])
        assert [shown["id"] for shown in page["assortment"]] == ["c"]
    with pytest.raises(vitrine.Problem, match="/items/1/features/price"):
        client.decide("frames", items=[{"id": i, "features": {"price": p}} for i, p in (("a", 1.0), ("b", float("nan")))])
    client.delete_placement("frames")


def test_proxy(service: vitrine.Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy of a company is not asked for this machine."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    for host in ("127.0.0.1", "localhost"):
        with vitrine.Client(service.url.replace("127.0.0.1", host), patience=-1) as client:
            client.list_placements()


def test_endless_timeout(service: vitrine.Service) -> None:
    with vitrine.Client(service.url, timeout=math.inf, patience=math.inf) as client:
        client.list_placements()


def test_fork(client: vitrine.Client) -> None:
    """The processes of a web server, forked after a call, have connections of their own."""
    client.list_placements()
    inherited = client._http
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if client.list_placements() and client._http is not inherited else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert client.list_placements()
    assert client._http is inherited


def test_baskets(client: vitrine.Client) -> None:
    client.put_placement("basket", max_size=2, features=[{"name": "x", "kind": "number"}])
    page = client.decide("basket", items=[{"id": id, "features": {"x": 1.0}, "revenue": 2.0} for id in "ab"], include=["a", "b"])
    client.outcome("basket", page["decision_id"], choices=[{"item": "a", "quantity": 2, "value": 5.0}, {"item": "b"}])
    decision = client.get_decision("basket", page["decision_id"])
    assert (decision["earned"], len(decision["choices"])) == (7.0, 2)
    client.delete_placement("basket")


def test_fallback_pages_are_not_reported(client: vitrine.Client) -> None:
    with vitrine.Client("http://127.0.0.1:1") as away:
        page = away.decide("shop", fallback=["a", "b"], within=0.1)
    client.outcome("shop", page["decision_id"], choice="a")
    client.activate("shop", page["decision_id"])
    with pytest.raises(vitrine.Problem, match="404"):
        client.get_decision("shop", "")


def test_async(service: vitrine.Service) -> None:
    async def day() -> Any:
        async with service.async_client(read_your_writes=True) as client:
            await client.put_placement("async", max_size=1, features=price())
            pages = []

            async def decide() -> None:
                pages.append(await client.decide("async", items=[{"id": "a", "features": {"price": 1}}]))

            async with anyio.create_task_group() as tasks:
                for _ in range(10):
                    tasks.start_soon(decide)
            for page in pages:
                await client.outcome("async", page["decision_id"], choice="a")
            async for event in client.events(placement="async", last_event_id=0):
                if event.kind == "chosen":
                    break
            assert len([line async for line in client.export("async")]) == 10
            return await client.stats("async")

    assert anyio.run(day)["outcomes"] == 10


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX")
def test_interrupted_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service lives on if its notebook's process group gets SIGINT."""
    started, popen = [], subprocess.Popen

    def start(*arguments: Any, **settings: Any) -> Any:
        started.append(popen(*arguments, **settings))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", start)
    with vitrine.serve() as service:
        started[0].send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            started[0].wait(1)
        assert httpx.get(service.url + "/healthz").is_success
    assert started[0].returncode == 0


def test_service_that_does_not_start(tmp_path: Any) -> None:
    config = tmp_path / "service.toml"
    config.write_text("listne = 1\n")
    with pytest.raises(vitrine.CommandError, match="listne"), vitrine.serve(config=config):
        pass
