"""What do the rows of a file mean today? Files of every version, read under today's names.

Version 2 counted `header_bytes`; for rows of version 1 they are 0, so what a header was counts as
payload. Version 3 gave two columns names that no SQL engine reserves. Until version 4, rows of
`Published` did not tell a message's attributes but a list of those who were believed to want it:
that list stands in `attributes` as JSON, and `traces.audience` takes it as it is. Only this module
knows former names: whoever reads rows does so through `stored_rows`, or on Spark by `stored_names`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from tidings.core.errors import ConfigError, first_line
from tidings.core.trace import SCHEMA_VERSION

RENAMED_IN_3 = {"recorded_at": "at", "predicate": "where"}  # by today's name
TEXT_IN_4 = {"attributes": "interested"}  # that were lists, likewise
ADDED_IN_2 = {"header_bytes": 0}  # with the value that rows of version 1 get


class StoredRows:
    """The rows of one open file; columns are asked for under today's names."""

    def __init__(self, file: Path, source: pq.ParquetFile) -> None:
        self._source = source
        self.version = checked_version(file, source.metadata.metadata)
        self._found = {field.name: field.type for field in source.schema_arrow}

    @property
    def footer(self) -> pq.FileMetaData:
        return self._source.metadata

    def type_of(self, column: pa.Field) -> pa.DataType | None:
        """The type that a column has in the file; None if it is missing."""
        stored = stored_names([column.name], self.version).get(column.name)
        kind = column.type if stored is None else self._found.get(stored)
        was_list = column.name in TEXT_IN_4 and kind is not None and _is_list_of_names(kind)
        return column.type if was_list else kind

    def read(self, schema: pa.Schema) -> pa.Table:
        """All rows, with the columns of this schema."""
        return self._today(self._source.read(columns=self._stored(schema)), schema)

    def batches(self, schema: pa.Schema, most_rows: int) -> Iterator[pa.Table]:
        """The same, some rows at a time."""
        for batch in self._source.iter_batches(most_rows, columns=self._stored(schema)):
            yield self._today(pa.Table.from_batches([batch]), schema)

    def extent(self, name: str) -> tuple[float, float] | None:
        """The least and the greatest value of a column, if the footer tells them."""
        stored = stored_names([name], self.version)[name]
        groups = [self.footer.row_group(number) for number in range(self.footer.num_row_groups)]
        columns = [group.column(n) for group in groups for n in range(group.num_columns)]
        known = [column.statistics for column in columns if column.path_in_schema == stored]
        if not known or not all(each is not None and each.has_min_max for each in known):
            return None
        return min(each.min for each in known), max(each.max for each in known)

    def _stored(self, schema: pa.Schema) -> list[str]:
        names = stored_names(schema.names, self.version)
        if missing := [name for name, stored in names.items() if stored not in self._found]:
            raise ValueError(f"it has no column {missing[0]}")
        return list(names.values())

    def _today(self, rows: pa.Table, schema: pa.Schema) -> pa.Table:
        names = stored_names(schema.names, self.version)
        columns = [
            _as_text(rows[names[field.name]], field)
            if field.name in names
            else pa.repeat(pa.scalar(ADDED_IN_2[field.name], field.type), rows.num_rows)
            for field in schema
        ]
        return pa.table(columns, names=schema.names).cast(schema)


def _as_text(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """A column of lists as JSON, where it is a text today."""
    if field.name not in TEXT_IN_4 or not _is_list_of_names(column.type):
        return column
    texts = [msgspec.json.encode(names).decode() for names in column.to_pylist()]
    return pa.chunked_array([texts], pa.string())


def _is_list_of_names(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) and pa.types.is_string(kind.value_type))


@contextmanager
def stored_rows(file: Path, content: bytes | None = None) -> Iterator[StoredRows]:
    """A file of rows, open; `content` is what is in it, if that was read before."""
    with (
        whole_parquet(file),
        pq.ParquetFile(file if content is None else pa.BufferReader(content)) as source,
    ):
        yield StoredRows(file, source)


@contextmanager
def whole_parquet(file: Path) -> Iterator[None]:
    """Whatever the reader finds wrong with the file is said with the file's name."""
    try:
        yield
    except (pa.ArrowException, ValueError, OSError) as error:
        problem = first_line(error)
        accepted = "a whole Parquet file of trace rows"
        raise ConfigError(str(file), "file", problem, accepted) from None


def stored_names(names: Iterable[str], version: int) -> dict[str, str]:
    """The name that each of these columns has in files of a version, if it has that column."""
    renamed = (RENAMED_IN_3 if version < 3 else {}) | (TEXT_IN_4 if version < 4 else {})
    added = ADDED_IN_2 if version < 2 else {}
    return {name: renamed.get(name, name) for name in names if name not in added}


def checked_version(file: Path, metadata: Mapping[bytes, bytes] | None) -> int:
    """The version of a file's rows. Those of a version to come may mean something else, so they are
    not read."""
    version = (metadata or {}).get(b"tidings", b"none").decode()
    if version not in map(str, range(1, SCHEMA_VERSION + 1)):
        accepted = f"traces of version 1 to {SCHEMA_VERSION}; run the simulation or sweep again"
        raise ConfigError(str(file), "the version of its trace rows", version, accepted)
    return int(version)


def older_versions(files: Iterable[Path]) -> dict[Path, int]:
    """The versions of those files that are not of today's; about 0.1 ms a file, as only footers
    are read."""
    older = {}
    for file in files:
        with whole_parquet(file):
            version = checked_version(file, pq.read_metadata(file).metadata)
        if version < SCHEMA_VERSION:
            older[file] = version
    return older
