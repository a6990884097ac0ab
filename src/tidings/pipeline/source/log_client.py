"""How does Spark read a broker's log? By asking, again and again, from an offset on.

The other end is `live.logs.server`. One connection is kept for as long as somebody reads. A broker
that does not answer, or has too many readers, is asked again for `patience_s`, so that a query
survives a restart of the broker, and a crowd. What cannot be read any more (removed by the log's
limits or with the whole log, or damaged) is `LogLoss`, and a reader may choose to go on without it.
Everything else that goes wrong is a `LogError`.
"""

from __future__ import annotations

import http.client
import time
from types import TracebackType
from urllib.parse import quote, urlsplit

import msgspec
from msgspec import Struct

from tidings.core.errors import ConfigError
from tidings.live.logs.records import Damaged, LogError, LogRecord, decode_records
from tidings.pipeline.source.log_options import SOURCE

ANSWER_WITHIN_S = 30.0
ASK_AGAIN_AFTER_S = 0.2
GONE, AHEAD, CROWDED = 410, 416, 503


class LogLoss(LogError):
    """Messages that were promised to a reader and cannot be read any more."""

    def __init__(self, problem: str, resume_at: int | None = None) -> None:
        super().__init__(problem)
        self.resume_at = resume_at  # where reading may go on, if the log has said so


class LogPlace(Struct, frozen=True):
    """Where a log is served."""

    host: str
    port: int
    log: str


class LogState(Struct, frozen=True):
    """What a log says of itself."""

    id: str
    oldest: int
    next: int
    stopped: str


class _Refusal(Struct, frozen=True):
    """What stands in an answer that is an error."""

    error: str
    resume_at: str | None = None


def log_place(url: str) -> LogPlace:
    """The place that a URL names."""
    try:
        parts = urlsplit(url)
        place = LogPlace(parts.hostname or "", parts.port or 0, parts.path.strip("/"))
    except ValueError:
        parts, place = urlsplit(""), LogPlace("", 0, "")
    if (
        parts.scheme != "tidings"
        or not all((place.host, place.port, place.log))
        or "/" in place.log
    ):
        accepted = "tidings://HOST:PORT/LOG, the log_port and the name of a log of a broker"
        raise ConfigError(SOURCE, "url", url, accepted)
    return place


class LogClient:
    """A conversation with a log; use it as a context."""

    def __init__(self, url: str, patience_s: float) -> None:
        self._place, self._url, self._patience_s = log_place(url), url, patience_s
        self._connection = http.client.HTTPConnection(
            self._place.host, self._place.port, timeout=ANSWER_WITHIN_S
        )

    def __enter__(self) -> LogClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def state(self) -> LogState:
        return msgspec.json.decode(self._get("/offsets"), type=LogState)

    def records(self, log_id: str, offset: int, limit: int) -> list[LogRecord]:
        """Records of that log from this offset on, at most so many, but at least one."""
        data = self._get(f"?id={log_id}&from={offset}&limit={limit}")
        if not data:
            raise LogLoss(f"{self._url} has no offset {offset}, though it had before")
        try:
            return decode_records(data, offset)
        except Damaged as damage:
            raise LogLoss(f"{self._url}: {damage}", damage.resume_at) from None

    def _get(self, what: str) -> bytes:
        status, body = self._asked(f"/log/{quote(self._place.log, safe='')}{what}")
        if status == http.HTTPStatus.OK:
            return body
        try:
            refusal = msgspec.json.decode(body, type=_Refusal)
        except msgspec.DecodeError:
            refusal = _Refusal("this is not the log_port of a broker")
        problem = f"{self._url} answers {status}: {refusal.error}"
        if refusal.resume_at is not None:
            raise LogLoss(problem, int(refusal.resume_at))
        raise LogLoss(problem) if status in (GONE, AHEAD) else LogError(problem)

    def _asked(self, target: str) -> tuple[int, bytes]:
        give_up_at = time.monotonic() + self._patience_s
        while True:
            try:
                self._connection.request("GET", target)
                answer = self._connection.getresponse()
                status, body = answer.status, answer.read()
                if status != CROWDED or time.monotonic() >= give_up_at:
                    return status, body
                self._connection.close()
                time.sleep(ASK_AGAIN_AFTER_S)
            except (OSError, http.client.HTTPException) as error:
                self._connection.close()
                if time.monotonic() >= give_up_at:
                    raise self._unreachable(error) from None
                time.sleep(ASK_AGAIN_AFTER_S)

    def _unreachable(self, error: Exception) -> LogError:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        place = self._place
        return LogError(
            f"{self._url} cannot be read: {why}. Is a broker running whose log_port is "
            f"{place.port} and whose log_host is reachable as {place.host}? It was asked for "
            f"{self._patience_s:g} s (option patience_s)."
        )
