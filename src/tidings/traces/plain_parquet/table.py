"""How do rows of one type become the bytes of a Parquet file?

The file has one group of rows; each column is a page, perhaps behind the page of its dictionary.
The footer says the schema, where each page lies, and the version of the rows. Any reader of Parquet
gets the columns of `traces.schemas`. The format is that of parquet-format 2.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from functools import cache
from typing import get_type_hints

from msgspec import Struct
from msgspec.structs import astuple, fields

from tidings.core.trace import ORIGIN_COLUMNS, SCHEMA_VERSION, Row
from tidings.traces.plain_parquet.columns import (
    BYTE_ARRAY,
    DOUBLE,
    INT64,
    Column,
    Flags,
    Numbers,
    Page,
    TextLists,
    Texts,
)
from tidings.traces.plain_parquet.thrift import (
    BINARY,
    I32,
    STRUCT,
    Field,
    binary,
    counted,
    false,
    i32,
    i64,
    listed,
    nested,
    struct,
    zigzag,
)

MAGIC = b"PAR1"
PLAIN, RLE, RLE_DICTIONARY = 0, 3, 8  # encodings
UNCOMPRESSED, GZIP = 0, 2  # codecs
GZIP_FROM_BYTES = 512  # below, there is little to gain
GZIP_LEVEL, GZIP_WINDOW = 1, 31  # the fastest; a window with gzip's own head
REQUIRED, REPEATED = 0, 2
UTF8, LIST = 0, 3  # converted types
STRING_TYPE = nested(10, struct(nested(1, struct())))  # the same as logical types
LIST_TYPE = nested(10, struct(nested(3, struct())))
DATA_PAGE, DICTIONARY_PAGE = 0, 2
BY_TYPE = struct(nested(1, struct()))  # values are ordered as their type says


class PlainTable:
    """Rows of one type on their way to a file; `origin` are the values of ORIGIN_COLUMNS."""

    def __init__(self, row_type: type[Row], origin: Sequence[str] = ("", "")) -> None:
        kinds = _kinds(row_type).items()
        self.columns: dict[str, Column] = {name: _column(name, kind) for name, kind in kinds}
        self._origin = origin
        self.num_rows = 0

    def add(self, rows: Sequence[Row]) -> None:
        """All of these rows, or an error (`columns`) and none of them."""
        values = [(value,) * len(rows) for value in self._origin]
        values += zip(*map(astuple, rows), strict=True)
        columns = list(self.columns.values())
        made = [column.made(each) for column, each in zip(columns, values, strict=True)]
        for column, each in zip(columns, made, strict=True):
            column.add(each)  # type: ignore[arg-type]  # what the same column has made
        self.num_rows += len(rows)

    def file(self) -> Iterator[bytes]:
        """The whole file, part by part."""
        yield MAGIC
        chunks, offset = list[_Chunk](), len(MAGIC)
        for name, column in self.columns.items() if self.num_rows else ():
            chunks.append(_chunk(name, column, offset))
            offset += chunks[-1].stored_bytes
            yield from chunks[-1].pages
            chunks[-1].pages.clear()
        footer = self._footer(chunks)
        yield footer + len(footer).to_bytes(4, "little") + MAGIC

    def _footer(self, chunks: list[_Chunk]) -> bytes:
        size_bytes = sum(chunk.size_bytes for chunk in chunks)
        parts = [struct(i64(2, chunk.offset), nested(3, chunk.about)) for chunk in chunks]
        group = struct(listed(1, STRUCT, parts), i64(2, size_bytes), i64(3, self.num_rows))
        version = struct(binary(1, b"tidings"), binary(2, str(SCHEMA_VERSION).encode()))
        return struct(
            i32(1, 2),  # of the format
            listed(2, STRUCT, self._schema()),
            i64(3, self.num_rows),
            listed(4, STRUCT, [group] if chunks else []),
            listed(5, STRUCT, [version]),
            binary(6, b"tidings"),
            listed(7, STRUCT, [BY_TYPE] * len(self.columns)),
        )

    def _schema(self) -> Iterator[bytes]:
        yield struct(binary(4, b"schema"), i32(5, len(self.columns)))
        for name, column in self.columns.items():
            if isinstance(column, TextLists):
                yield _element(name, REQUIRED, i32(5, 1), i32(6, LIST), LIST_TYPE)
                yield _element("list", REPEATED, i32(5, 1))
                yield _element("element", REQUIRED, i32(6, UTF8), STRING_TYPE, kind=BYTE_ARRAY)
            elif isinstance(column, Texts):
                yield _element(name, REQUIRED, i32(6, UTF8), STRING_TYPE, kind=BYTE_ARRAY)
            else:
                yield _element(name, REQUIRED, kind=column.type)


class _Chunk(Struct, frozen=True):
    """A column of the file."""

    offset: int  # in the file
    pages: list[bytes]
    stored_bytes: int
    size_bytes: int  # before it was compressed
    about: bytes


@cache
def _kinds(row_type: type[Row]) -> dict[str, object]:
    """What each column holds: its annotation."""
    hints = get_type_hints(row_type)
    kinds = {field.name: hints[field.name] for field in fields(row_type)}
    return {**dict.fromkeys(ORIGIN_COLUMNS, str), **kinds}


def _column(name: str, kind: object) -> Column:
    if kind is float:
        return Numbers(DOUBLE, of_instants=name.endswith("_at"))
    if kind is int:
        return Numbers(INT64)
    if kind is bool:
        return Flags()
    return Texts() if kind is str else TextLists()


def _element(name: str, repetition: int, *more: Field, kind: int | None = None) -> bytes:
    typed = () if kind is None else (i32(1, kind),)
    return struct(*typed, i32(3, repetition), binary(4, name.encode()), *more)


def _chunk(name: str, column: Column, offset: int) -> _Chunk:
    page = column.page()
    size_bytes = len(page.values) + len(page.dictionary or b"")
    codec = GZIP if size_bytes >= GZIP_FROM_BYTES else UNCOMPRESSED
    pages, encoding = list[bytes](), PLAIN
    if page.dictionary is not None:
        encoding = RLE_DICTIONARY
        head = nested(7, struct(i32(1, page.dictionary_count), i32(2, PLAIN), false(3)))
        pages.append(_page(DICTIONARY_PAGE, page.dictionary, head, codec))
    data_at = offset + sum(map(len, pages))
    head = nested(5, struct(i32(1, page.count), i32(2, encoding), i32(3, RLE), i32(4, RLE)))
    pages.append(_page(DATA_PAGE, page.values, head, codec))
    stored_bytes = sum(map(len, pages))
    path = [name, "list", "element"] if isinstance(column, TextLists) else [name]
    about = struct(
        i32(1, column.type),
        listed(2, I32, map(zigzag, sorted({PLAIN, RLE, encoding}))),
        listed(3, BINARY, (counted(part.encode()) for part in path)),
        i32(4, codec),
        i64(5, page.count),
        i64(6, size_bytes),
        i64(7, stored_bytes),
        i64(9, data_at),
        *((i64(11, offset),) if encoding == RLE_DICTIONARY else ()),
        *_statistics(page),
    )
    return _Chunk(offset, pages, stored_bytes, size_bytes, about)


def _statistics(page: Page) -> Iterator[Field]:
    if page.least_and_most is not None:
        least, most = page.least_and_most
        yield nested(12, struct(i64(3, 0), binary(5, most), binary(6, least)))


def _page(kind: int, values: bytes, head: Field, codec: int) -> bytes:
    stored = values
    if codec == GZIP:
        squeeze = zlib.compressobj(GZIP_LEVEL, wbits=GZIP_WINDOW)
        stored = squeeze.compress(values) + squeeze.flush()
    return struct(i32(1, kind), i32(2, len(values)), i32(3, len(stored)), head) + stored
