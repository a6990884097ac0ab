"""Bad files of traces are named, cost no good row, and never end in a traceback."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from support.segments import AN_HOUR_AGO_S, write_segment
from support.traces import a_wish
from typer.testing import CliRunner

from tidings.cli.main import app
from tidings.core.errors import ConfigError, TidingsError
from tidings.core.trace import LinkChanged, Probed
from tidings.files.link_model import read_link_model
from tidings.pipeline.learn.job import learn
from tidings.pipeline.learn.measurements import checked_input
from tidings.traces.compaction import compact
from tidings.traces.schemas import arrow_schema

pytestmark = pytest.mark.xdist_group("spark")

SEGMENTS, PROBES = 5, 40  # of each


def probed(folder: Path) -> Path:
    """Segments of one broker that asks its neighbour every 5 s."""
    for number in range(SEGMENTS):
        instants = [5.0 * (PROBES * number + place) for place in range(PROBES)]
        rows = [Probed(at + 0.01 + 1e-5 * (at % 7), "b1", "b2", 0.01) for at in instants]
        up = LinkChanged(instants[0], "b1", "b2", True)
        write_segment(folder, "live", "b1", number, [up, *rows], AN_HOUR_AGO_S)
    return folder


def segment(folder: Path, number: int) -> Path:
    return folder / "probed" / f"live-b1-{number:06}.parquet"


def cut_off(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def broken_inside(file: Path) -> None:
    """Its footer is good, its first pages are not."""
    content = bytearray(file.read_bytes())
    content[4:200] = bytes(196)
    file.write_bytes(content)


def without_columns(file: Path) -> None:
    """Of this version of the tables, but with the names of runs only."""
    metadata = arrow_schema(Probed).metadata
    pq.write_table(pq.read_table(file).select(["run"]).replace_schema_metadata(metadata), file)


def with_a_column_of_texts(file: Path) -> None:
    rows = pq.read_table(file)
    number = rows.schema.get_field_index("round_trip_s")
    texts = rows["round_trip_s"].cast(pa.string())
    pq.write_table(rows.set_column(number, "round_trip_s", texts), file)


BAD: dict[Callable[[Path], None], str] = {
    cut_off: "file is",
    without_columns: "column world is 'missing'",
    with_a_column_of_texts: "column round_trip_s is 'string'",
    broken_inside: "file is",
}


def test_bad_files_are_named_and_the_others_are_learned_from(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder, out = probed(tmp_path / "traces"), tmp_path / "weather.parquet"
    for number, spoil in enumerate(BAD):
        spoil(segment(folder, number))
    run = CliRunner().invoke(app, ["learn", str(folder), "--out", str(out)])
    assert run.exit_code == 0, run.output
    for number, said in enumerate(BAD.values()):
        assert f"Not read: {segment(folder, number)}: {said}" in run.output
    (link,) = read_link_model(out).links.values()
    assert link.samples == (SEGMENTS - len(BAD)) * PROBES


def test_rows_that_are_gathered_while_spark_starts_are_found(
    spark: SparkSession, tmp_path: Path
) -> None:
    given = checked_input(probed(tmp_path), None, 0.2)
    compact(tmp_path, 0.0, 2e9)
    assert not segment(tmp_path, 0).exists()
    lesson = learn(spark, given)
    assert [link.samples for link in lesson.links] == [SEGMENTS * PROBES]
    assert lesson.quarantined == ()


def test_a_table_with_broken_pages_is_an_error_in_one_paragraph(
    spark: SparkSession, tmp_path: Path
) -> None:
    columns = {"slice": range(500), "source": ["a"] * 500, "target": ["b"] * 500}
    path = tmp_path / "rtt.parquet"
    pq.write_table(pa.table(columns | {"rtt_ms": [float(n) for n in range(500)]}), path)
    broken_inside(path)
    with pytest.raises(TidingsError, match=r"Spark could not learn from .*rtt\.parquet"):
        learn(spark, checked_input(path, None, 0.2))


def test_traces_of_which_all_that_tells_round_trips_is_bad_say_so(tmp_path: Path) -> None:
    write_segment(probed(tmp_path), "live", "b1", 9, [a_wish("b1/x:t")])
    for number in range(SEGMENTS):
        cut_off(segment(tmp_path, number))
    with pytest.raises(ConfigError, match=r"a whole file of them, but in .*000000\.parquet file"):
        checked_input(tmp_path, None, 0.2)
