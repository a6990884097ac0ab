"""Trace rows: what happened, in the past tense, the same from both worlds.

Every number that Tidings reports is computed from these rows. At level `outcomes` a run leaves who
subscribed, what was published, delivered and dropped, and how much each link carried per minute; at
level `hops` also one row per transmission, acknowledgement and probe. Rows wait as small structs
until a chunk is full and are then turned into Arrow columns, so memory does not grow with a run.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pyarrow as pa
from msgspec import Struct, msgpack
from msgspec.structs import astuple, fields

SCHEMA_VERSION = 1
CHUNK_ROWS = 65_536  # about 10 MB of structs; the digest of a run depends on it

Level = Literal["outcomes", "hops"]


class Row(Struct, frozen=True, array_like=True, gc=False):
    """What every row says: when, by the recording broker's clock, and where."""

    at: float
    broker: str


class Subscribed(Row, frozen=True, array_like=True, gc=False):
    subscription: str
    topic: str
    where: str
    deadline_s: float
    price: float
    active: bool  # False: the subscription ended here


class Published(Row, frozen=True, array_like=True, gc=False):
    message: int
    topic: str
    size_bytes: int
    deadline_s: float
    price: float
    strategy: str
    interested: tuple[str, ...]  # the subscriptions that the publisher's broker knew


class Delivered(Row, frozen=True, array_like=True, gc=False):
    """One message handed to all interested clients of one broker."""

    message: int
    age_s: float  # as the envelope tells it; `at` differences need one clock, this does not
    hops: int
    subscriptions: tuple[str, ...]


class Dropped(Row, frozen=True, array_like=True, gc=False):
    """A copy given up, for the sake of these destinations; another copy may still arrive."""

    message: int
    reason: str
    destinations: tuple[str, ...]


class Carried(Row, frozen=True, array_like=True, gc=False):
    """What a broker put on one link in the minute that ended at `at`."""

    neighbour: str
    kind: str  # data, repeat, ack, probe, control; discarded: repeats that came in
    frames: int
    size_bytes: int


class Forwarded(Row, frozen=True, array_like=True, gc=False):
    message: int
    neighbour: str
    transmission: int
    attempt: int
    destinations: int
    size_bytes: int


class Acknowledged(Row, frozen=True, array_like=True, gc=False):
    neighbour: str
    transmission: int
    round_trip_s: float


class Probed(Row, frozen=True, array_like=True, gc=False):
    neighbour: str
    round_trip_s: float  # NaN: no answer in time


class LinkChanged(Row, frozen=True, array_like=True, gc=False):
    neighbour: str
    up: bool


class Reason:
    """Why a copy was dropped; each is a counter somebody will look at."""

    EXPIRED = "expired"  # nobody takes it this late
    NO_ROUTE = "no-route"  # the strategy knows no way from here
    QUEUE_FULL = "queue-full"
    UNACKNOWLEDGED = "unacknowledged"  # lost on a link, as far as the sender can tell
    LINK_DOWN = "link-down"  # it waited for a link that went away
    UNKNOWN_STRATEGY = "unknown-strategy"
    BROKER_FAILED = "broker-failed"  # it was in the hands of a broker that died


TABLES: dict[str, type[Row]] = {
    "subscribed": Subscribed,
    "published": Published,
    "delivered": Delivered,
    "dropped": Dropped,
    "carried": Carried,
    "forwarded": Forwarded,
    "acknowledged": Acknowledged,
    "probed": Probed,
    "link_changed": LinkChanged,
}
_TABLE_OF = {row_type: table for table, row_type in TABLES.items()}

# What tells runs apart; constant within a file, so it costs a reader nothing.
ORIGIN_COLUMNS = ("run", "world")
_ARROW = {float: pa.float64(), int: pa.int64(), str: pa.string(), bool: pa.bool_()}


def arrow_schema(row_type: type[Row]) -> pa.Schema:
    """The Arrow schema of a row type, derived from its annotations."""
    hints = get_type_hints(row_type)
    columns = [pa.field(name, pa.string(), nullable=False) for name in ORIGIN_COLUMNS]
    columns += [
        pa.field(f.name, _arrow_type(hints[f.name]), nullable=False) for f in fields(row_type)
    ]
    return pa.schema(columns, metadata={"tidings": str(SCHEMA_VERSION)})


def _arrow_type(hint: type | UnionType) -> pa.DataType:
    if get_origin(hint) is tuple:
        return pa.list_(pa.field("item", _ARROW[get_args(hint)[0]], nullable=False))
    return _ARROW[hint]  # type: ignore[index]


Sink = Callable[[str, pa.RecordBatch], None]


class Recorder:
    """Gathers rows and hands them on in Arrow batches, one table each."""

    def __init__(self, run: str, world: str, sink: Sink, digest: bool = False) -> None:
        self._origin = (run, world)
        self._sink = sink
        self._rows: dict[type[Row], list[Row]] = {row_type: [] for row_type in _TABLE_OF}
        self._schemas = {row_type: arrow_schema(row_type) for row_type in _TABLE_OF}
        self._digest = sha256() if digest else None

    def record(self, row: Row) -> None:
        rows = self._rows[type(row)]
        rows.append(row)
        if len(rows) >= CHUNK_ROWS:
            self._flush_table(type(row))

    def flush(self) -> None:
        for row_type in _TABLE_OF:
            if self._rows[row_type]:
                self._flush_table(row_type)

    @property
    def digest(self) -> str:
        """What this run was, in 64 characters: equal rows give equal digests anywhere."""
        assert self._digest is not None, "this recorder was made without a digest"
        return self._digest.hexdigest()

    def _flush_table(self, row_type: type[Row]) -> None:
        rows = self._rows[row_type]
        self._rows[row_type] = []
        columns = list(zip(*map(astuple, rows), strict=True))
        if self._digest is not None:
            self._digest.update(msgpack.encode((_TABLE_OF[row_type], rows)))
        self._sink(_TABLE_OF[row_type], self._batch(row_type, columns, len(rows)))

    def _batch(self, row_type: type[Row], columns: list[Any], count: int) -> pa.RecordBatch:
        schema = self._schemas[row_type]
        constants = [pa.repeat(pa.scalar(value, pa.string()), count) for value in self._origin]
        values = [
            pa.array(column, field.type)
            for column, field in zip(columns, list(schema)[len(constants) :], strict=True)
        ]
        return pa.record_batch(constants + values, schema=schema)
