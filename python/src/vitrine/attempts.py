"""The rules by which calls are tried again, for both clients: those of the Go package service/client."""

from __future__ import annotations

import copyreg
import json
import math
import random
import socket
import ssl
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from vitrine.api import Message

MIN_WAIT, MAX_WAIT = 0.05, 5.0  # seconds
RETRIED = {429, 502, 503, 504}


class Problem(Exception):
    """A refusal: its HTTP status, its kind such as "conflict", and its detail, which says what to do.

    document is the whole answer, an api.Problem, or empty if something other than the service has answered.
    """

    def __init__(self, answer: httpx.Response) -> None:
        self.status = answer.status_code
        self.document: dict[str, Any] = {}
        if _media_type(answer) == "application/problem+json":
            with suppress(ValueError):  # a garbled one: the status decides
                read = answer.json()
                self.document = read if isinstance(read, dict) else {}
        self.kind = str(self.document.get("type", "")).rpartition(":")[2]
        self.detail = str(self.document.get("detail", "not an answer of the service"))
        super().__init__(f"{self.status} {self.kind or answer.reason_phrase}: {self.detail}")

    def __reduce__(self) -> Any:
        """For pools of processes: by default, unpickling would pass the text to the constructor instead of the answer."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]

    @property
    def away(self) -> bool:
        """Whether the service cannot take requests now."""
        return self.status in RETRIED


@dataclass
class State:
    """What calls share: the address to begin with and the last entry of the log that a call has written."""

    first: int = 0
    wrote: int = 0


@dataclass
class Rules:
    addresses: Sequence[str]
    timeout: float
    patience: float
    hurried: bool = False  # whether attempts end with the patience
    state: State = field(default_factory=State)
    clock: Callable[[], float] = time.monotonic
    jitter: Callable[[], float] = random.random

    def attempts(self, method: str) -> Generator[tuple[str, float], httpx.Response | httpx.TransportError | None, httpx.Response]:
        """Yields an address to ask and a timeout, and is sent the answer; or "" and a time to wait.

        It returns a good answer, and raises a Problem or the last failure.
        """
        began, ceiling, asked = self.clock(), MIN_WAIT, 0
        while True:
            waits: list[float] = []
            first = self.state.first
            for i in range(len(self.addresses)):
                at = (first + i) % len(self.addresses)
                left = began + self.patience - self.clock()
                asked += 1
                answer = yield self.addresses[at], min(self.timeout, max(left, MIN_WAIT)) if self.hurried else self.timeout
                assert answer is not None
                failure: Problem | httpx.TransportError
                if isinstance(answer, httpx.Response):
                    if answer.is_success or answer.status_code == 304:  # for an If-None-Match
                        self.state.wrote = max(self.state.wrote, _number(answer.headers.get("Vitrine-Entry")))
                        return answer
                    failure, wait = Problem(answer), _retry_after(answer)
                    if method == "DELETE" and asked > 1 and failure.kind == "not-found":
                        return answer  # an earlier attempt has deleted it
                    if not failure.away:
                        raise failure
                    if failure.status == 429:
                        waits = [wait]
                        break
                else:
                    failure, wait = answer, math.inf if _hopeless(answer) else 0
                if self.state.first == at:
                    self.state.first = (at + 1) % len(self.addresses)
                waits.append(wait)
                if 0 <= self.patience < self.clock() - began:
                    break
            wait = min(waits) + self.jitter() * ceiling
            if self.patience < 0 or self.clock() - began + wait > self.patience:
                raise failure
            yield "", wait
            ceiling = min(2 * ceiling, MAX_WAIT)


def decoded(answer: httpx.Response, wanted: str) -> Any:
    """The JSON or text of an answer, None if it has no content or the caller has it."""
    if not answer.is_success or answer.status_code == 204:
        return None
    if not answer.content:
        raise json.JSONDecodeError(f"{answer.url} has sent an empty answer: is it a decision service?", "", 0)
    if _media_type(answer) != wanted:
        raise ValueError(f"{answer.url} has answered with the type {_media_type(answer)!r}, want {wanted}: is it a decision service?")
    return answer.json() if wanted == "application/json" else answer.text


def plain(value: Any) -> Any:
    """A scalar, an array or a series of numpy, pandas or polars as a value of Python."""
    for listed in ("tolist", "to_list"):
        if hasattr(value, listed) and type(of_python := getattr(value, listed)()) is not type(value):
            return of_python
    raise TypeError(f"{value!r}: JSON holds numbers, strings, true, false, null, lists and dictionaries, not a {type(value).__name__}")


def addresses(base: str) -> list[str]:
    """The addresses in a base, without slashes at their ends."""
    all = [a.strip().rstrip("/") for a in base.split(",")]
    for a in all:
        url = httpx.URL(a)
        if url.scheme not in ("http", "https") or not url.host or "?" in a or "#" in a:
            raise ValueError(f"base {a!r}: must be a URL such as 'http://127.0.0.1:8080', or several with commas between them")
    return all


class Lines:
    """The lines of a stream that comes in parts. Only a line feed ends one: JSON may contain other breaks, such as U+2028."""

    def __init__(self) -> None:
        self._rest = ""

    def add(self, part: str) -> list[str]:
        """The lines that a part ends."""
        *whole, self._rest = (self._rest + part).split("\n")
        return whole


class Messages:
    """The events of a stream that comes in parts. An empty line ends an event."""

    def __init__(self) -> None:
        self._split = Lines()
        self._fields: dict[str, str] = {}

    def add(self, part: str) -> Iterator[Message]:
        """The events that a part ends."""
        for line in self._split.add(part):
            if line:
                name, _, value = line.partition(":")
                self._fields[name] = value.removeprefix(" ")
                continue
            fields, self._fields = self._fields, {}
            if "id" in fields:
                yield Message(int(fields["id"]), fields["event"], json.loads(fields["data"]))


def _media_type(answer: httpx.Response) -> str:
    return str(answer.headers.get("Content-Type", "")).partition(";")[0].strip().lower()


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() else 0


def _retry_after(answer: httpx.Response) -> float:
    text = answer.headers.get("Retry-After", "")
    if text.isdecimal():
        return float(text)
    try:
        return max(parsedate_to_datetime(text).timestamp() - time.time(), 0)
    except ValueError:
        return 0


def _hopeless(failure: BaseException | None) -> bool:
    """Whether another attempt at the same address cannot help: a name that does not exist, or a certificate."""
    while failure is not None:
        if isinstance(failure, ssl.SSLError):
            return True
        if isinstance(failure, socket.gaierror):
            return failure.errno == socket.EAI_NONAME
        failure = failure.__cause__ or failure.__context__
    return False
