"""What does each subscription ask for, as far as is known by now, and who wants a message?

If a subscription was renewed, its deadline is what it asked for last. (`traces.outcomes` judges
each message by what was asked for when it was published; the two differ for windows around a
renewal.) Files are read once, as they appear: a subscription whose row is written only after a
message has been admitted is not in that message's audience. A file that holds no subscriptions is
passed over, with a warning, and counted.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from tidings.core.errors import ConfigError
from tidings.core.trace import TABLES
from tidings.traces.audience import CHANGE_COLUMNS, Audiences
from tidings.traces.files import parquet_files
from tidings.traces.schemas import arrow_schema
from tidings.traces.stored import stored_rows

TABLE = "subscribed"
COLUMNS = ("run", "deadline_s", *CHANGE_COLUMNS)

Deadline = tuple[str, str, float]  # run, subscription, seconds


class LatestWishes:
    """The subscriptions of a trace folder."""

    def __init__(self, traces: Path, warn: Callable[[str], None]) -> None:
        self._folder, self._warn = traces / TABLE, warn
        self.refused = 0
        self._known: set[Path] = set()
        self._audiences = Audiences()
        self._last: dict[tuple[str, str], tuple[float, float]] = {}  # instant, deadline

    def deadlines(self) -> list[Deadline]:
        """One per subscription of each run, in order."""
        self._look()
        return [(*key, deadline_s) for key, (_, deadline_s) in sorted(self._last.items())]

    def told(self, published: pa.Table) -> pa.Table:
        """Publications, each with those who wanted it, in a column `interested`."""
        self._look()
        return self._audiences.told(published)

    def _look(self) -> None:
        for file in parquet_files(self._folder):
            if file not in self._known:
                self._known.add(file)
                self._read(file)

    def _read(self, file: Path) -> None:
        try:
            rows = _rows(file)
        except ConfigError as problem:
            if file.exists():  # else it has been gathered with others, where it will be found
                self.refused += 1
                self._warn(f"{problem} It is passed over.")
            return
        self._audiences.learn(rows)
        for row in rows.to_pylist():
            if row["active"]:
                key, asked = (
                    (row["run"], row["subscription"]),
                    (row["recorded_at"], row["deadline_s"]),
                )
                self._last[key] = max(self._last.get(key, asked), asked)


def _rows(file: Path) -> pa.Table:
    whole = arrow_schema(TABLES[TABLE])
    schema = pa.schema([whole.field(name) for name in COLUMNS])
    with stored_rows(file) as stored:
        return stored.read(schema)
