"""How do readers get at a log? By HTTP/1.1, as little of it as is needed, on a port of its own.

Requests
--------
    GET /log                                    the logs of this broker, JSON
    GET /log/NAME/offsets                       one of them: oldest, next, id, stopped, ..., JSON
    GET /log/NAME?from=OFFSET[&limit=RECORDS][&id=ID]   records, as `logs.records` describes them

Answers
-------
An answer has at most `MAX_ANSWER_BYTES`, but one record always fits; a reader asks again from the
offset after the last. An answer without records means that nothing more is there yet. Errors are
JSON with the reason:

- 404: there is no such log.
- 410: the offset is not kept any more, or the log has another id than the one asked for.
- 416: the offset is not there yet.
- 500: a record is damaged; the answer has the offset where reading may go on.
- 503: too many readers are connected. It is sent at once, before the request is read.

Files are read by threads. A reader that takes an answer too slowly, or sends nothing for too long,
is disconnected; nobody else waits for it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http import HTTPStatus
from urllib.parse import parse_qsl, unquote

import msgspec
from msgspec import Struct

from tidings.live.logs.keeper import KeptLog
from tidings.live.logs.message_log import Ahead, Gone
from tidings.live.logs.records import Damaged, LogError

MAX_HEAD_BYTES = 8 << 10  # of a request
MAX_CONNECTIONS = 128
MAX_ANSWER_BYTES = 1 << 20
MAX_LIMIT = 10_000  # records in one answer
IDLE_WITHIN_S = 60.0  # between two requests of one connection
TAKEN_WITHIN_S = 30.0  # an answer, by its reader
READING_THREADS = 2

_REQUEST_LINE = re.compile(r"([A-Z]+) (\S+) HTTP/1\.[01]")
_WHOLE = re.compile(r"[0-9]{1,18}")


class Answer(Struct, frozen=True):
    status: HTTPStatus
    body: bytes
    kind: str = "application/json"
    stays: bool = True  # whether the connection stays open


class _Refused(Exception):
    """A request that gets an error for an answer."""

    def __init__(self, status: HTTPStatus, problem: str, stays: bool = True, **more: str) -> None:
        super().__init__(problem)
        body = msgspec.json.encode({"error": problem, **more})
        self.answer = Answer(status, body, stays=stays)


class LogServer:
    """Serves the logs of one broker."""

    def __init__(self, logs: Mapping[str, KeptLog]) -> None:
        self._logs = logs
        self._connections: set[asyncio.Task[None]] = set()
        self._threads = ThreadPoolExecutor(READING_THREADS, "log-reader")

    def accept(self) -> asyncio.Protocol:
        """The protocol of a new connection."""
        return asyncio.StreamReaderProtocol(asyncio.StreamReader(MAX_HEAD_BYTES), self._serve)

    async def stop(self) -> None:
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        self._threads.shutdown()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        this = asyncio.current_task()
        assert this is not None
        if len(self._connections) >= MAX_CONNECTIONS:
            with suppress(OSError):
                _write(writer, _crowded())  # at once: who waits for a request takes up room
            writer.close()
            return
        self._connections.add(this)
        try:
            await self._converse(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            writer.transport.abort()  # the reader is gone, or does not read
        finally:
            writer.close()
            self._connections.discard(this)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        stays = True
        while stays:
            try:
                answer = await self._answer(reader)
            except _Refused as refused:
                answer = refused.answer
            stays = answer.stays
            _write(writer, answer)
            async with asyncio.timeout(TAKEN_WITHIN_S):
                await writer.drain()

    async def _answer(self, reader: asyncio.StreamReader) -> Answer:
        try:
            async with asyncio.timeout(IDLE_WITHIN_S):
                head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            problem = f"a request has more than {MAX_HEAD_BYTES} bytes before its empty line"
            raise _Refused(status, problem, stays=False) from None
        target, stays = _request(head)
        answer = await self._look_up(target)
        return msgspec.structs.replace(answer, stays=stays)

    async def _look_up(self, target: str) -> Answer:
        path, _, query = target.partition("?")
        match [unquote(part) for part in path.removeprefix("/").split("/")]:
            case ["log"]:
                listed = [entry.status() for entry in self._logs.values()]
                return Answer(HTTPStatus.OK, msgspec.json.encode(listed))
            case ["log", name, "offsets"]:
                return Answer(HTTPStatus.OK, msgspec.json.encode(self._log(name).status()))
            case ["log", name]:
                return await self._records(self._log(name), query)
        places = "/log, /log/NAME/offsets and /log/NAME?from=OFFSET"
        raise _Refused(HTTPStatus.NOT_FOUND, f"nothing is at {path}; there is {places}")

    def _log(self, name: str) -> KeptLog:
        entry = self._logs.get(name)
        if entry is None:
            known = ", ".join(self._logs)
            raise _Refused(HTTPStatus.NOT_FOUND, f"no log is called {name!r}; there is: {known}")
        return entry

    async def _records(self, entry: KeptLog, query: str) -> Answer:
        asked = dict(parse_qsl(query, keep_blank_values=True))
        offset = _number(asked, "from", None)
        limit = min(_number(asked, "limit", MAX_LIMIT), MAX_LIMIT)
        if asked.pop("id", entry.kept.id) != entry.kept.id:
            raise _Refused(HTTPStatus.GONE, "this log has another id: it was made anew")
        if asked or limit == 0:
            problem = f"accepted are from=OFFSET, limit=RECORDS (from 1), id=ID, not: {query}"
            raise _Refused(HTTPStatus.BAD_REQUEST, problem)
        read, loop = entry.kept.read, asyncio.get_running_loop()
        try:
            data = await loop.run_in_executor(self._threads, read, offset, limit, MAX_ANSWER_BYTES)
        except Gone as error:
            raise _Refused(HTTPStatus.GONE, str(error)) from None
        except Ahead as error:
            raise _Refused(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, str(error)) from None
        except Damaged as error:
            status, resume_at = HTTPStatus.INTERNAL_SERVER_ERROR, str(error.resume_at)
            raise _Refused(status, str(error), resume_at=resume_at) from None
        except (LogError, OSError) as error:
            raise _Refused(HTTPStatus.INTERNAL_SERVER_ERROR, str(error)) from None
        return Answer(HTTPStatus.OK, data, "application/octet-stream")


def _write(writer: asyncio.StreamWriter, answer: Answer) -> None:
    if writer.transport.is_closing():  # uvloop has another error for it, which says less
        raise ConnectionResetError("the reader is gone")
    writer.write(_encoded(answer))


def _crowded() -> Answer:
    problem = f"{MAX_CONNECTIONS} readers are connected, and no more are taken; try again later"
    return _Refused(HTTPStatus.SERVICE_UNAVAILABLE, problem, stays=False).answer


def _request(head: bytes) -> tuple[str, bool]:
    """What is asked for, and whether the connection is to stay open."""
    line, *fields = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    match = _REQUEST_LINE.fullmatch(line)
    if match is None:
        problem = "this is not a request of HTTP/1.1"
        raise _Refused(HTTPStatus.BAD_REQUEST, problem, stays=False)
    headers = {name.lower(): value.strip() for name, _, value in (f.partition(":") for f in fields)}
    if match[1] != "GET":
        problem = f"logs are only read: the method is GET, not {match[1]}"
        raise _Refused(HTTPStatus.METHOD_NOT_ALLOWED, problem, stays=False)
    if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
        problem = "a request for a log has no body"
        raise _Refused(HTTPStatus.BAD_REQUEST, problem, stays=False)
    stays = line.endswith("1.1") and headers.get("connection", "").lower() != "close"
    return match[2], stays


def _number(asked: dict[str, str], name: str, default: int | None) -> int:
    text = asked.pop(name, None)
    if text is None and default is not None:
        return default
    if text is None or not _WHOLE.fullmatch(text):
        problem = f"{name} is {text!r}, but accepted is: a whole number from 0"
        raise _Refused(HTTPStatus.BAD_REQUEST, problem)
    return int(text)


def _encoded(answer: Answer) -> bytes:
    head = (
        f"HTTP/1.1 {answer.status.value} {answer.status.phrase}\r\n"
        f"Content-Type: {answer.kind}\r\nContent-Length: {len(answer.body)}\r\n"
        f"Connection: {'keep-alive' if answer.stays else 'close'}\r\n\r\n"
    )
    return head.encode() + answer.body
