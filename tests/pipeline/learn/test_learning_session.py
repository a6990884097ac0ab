"""A table that is not small is learned from in little memory, unless somebody says otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from tidings.cli.main import app
from tidings.core.errors import TidingsError
from tidings.pipeline.analyse.spark_settings import LARGE_BYTES, PARTITIONS, SMALL_BYTES
from tidings.pipeline.learn import session
from tidings.pipeline.learn.measurements import Input, InputKind
from tidings.pipeline.learn.session import COMPRESSED, learning_session, learning_settings
from tidings.pipeline.session import LOCALLY, MEMORY

TABLE_BYTES = 9_400_000  # of 240,000 links in six slices


class Started(TidingsError):
    """Instead of a session: how Spark would have started."""

    def __init__(
        self, master: str | None, app: str, more: dict[str, str], brief: bool = False
    ) -> None:
        super().__init__(app)
        self.more, self.brief = more, brief


def raise_started(*how: Any) -> None:
    raise Started(*how)


def started(
    monkeypatch: pytest.MonkeyPatch,
    size_bytes: int,
    kind: InputKind = "table",
    master: str | None = None,
    more: dict[str, str] | None = None,
) -> Started:
    monkeypatch.setattr(session, "spark_session", raise_started)
    monkeypatch.setattr(Input, "size_bytes", lambda given: size_bytes)
    given = Input(Path("rtt.parquet"), kind, 60.0, 0.2, 1.0)
    with pytest.raises(Started) as how:
        learning_session(given, master, more)
    return how.value


def memory_mb(size_bytes: int) -> int:
    return int(learning_settings("table", size_bytes, local=True)[MEMORY].removesuffix("m"))


def test_a_large_table_gets_little_memory_small_parts_and_javas_simplest_ways(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    how = started(monkeypatch, TABLE_BYTES)
    assert how.more[MEMORY] == "587m"
    assert int(how.more[PARTITIONS]) >= 9
    assert how.more.items() >= COMPRESSED.items()
    assert how.brief


def test_what_a_person_sets_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    how = started(monkeypatch, TABLE_BYTES, more={MEMORY: "3g", PARTITIONS: "5"})
    assert (how.more[MEMORY], how.more[PARTITIONS]) == ("3g", "5")
    assert how.more.items() >= COMPRESSED.items()


def test_memory_grows_with_a_table_up_to_what_any_work_may_have() -> None:
    sizes = [SMALL_BYTES, TABLE_BYTES, 3 * TABLE_BYTES, LARGE_BYTES, 10**9, 10**12]
    grown = [memory_mb(size_bytes) for size_bytes in sizes]
    assert grown == sorted(grown)
    assert grown[0] >= 512
    assert (grown[-1], LOCALLY[MEMORY]) == (4096, "4g")


def test_few_rows_are_learned_from_as_by_any_other_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    how = started(monkeypatch, SMALL_BYTES - 1)
    assert (how.more, how.brief) == ({}, True)


def test_java_compiles_thoroughly_what_takes_many_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not started(monkeypatch, LARGE_BYTES).brief
    assert not started(monkeypatch, TABLE_BYTES, "traces").brief


@pytest.mark.parametrize(("kind", "master"), [("traces", None), ("table", "spark://host:7077")])
def test_traces_and_clusters_keep_their_memory(
    kind: InputKind, master: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert started(monkeypatch, TABLE_BYTES, kind, master).more == COMPRESSED


def test_the_command_starts_such_a_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "rtt.parquet"
    row = {"slice": [0], "source": [0], "target": [1], "rtt_ms": [1.0]}
    pq.write_table(pa.table(row), table)
    monkeypatch.setattr(session, "spark_session", raise_started)
    monkeypatch.setattr(Input, "size_bytes", lambda given: TABLE_BYTES)
    words = ["learn", str(table), "--out", str(tmp_path / "weather.parquet"), "--quiet"]
    plain, other = (
        CliRunner().invoke(app, words + more).exception for more in ([], ["--conf", f"{MEMORY}=3g"])
    )
    assert isinstance(plain, Started)
    assert isinstance(other, Started)
    assert (plain.more[MEMORY], other.more[MEMORY]) == ("587m", "3g")
