"""Gathering segments loses and doubles no row, whenever it is killed."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.segments import AN_HOUR_AGO_S, a_moment, live_folder, rows_in, write_segment

from tidings.core.errors import ConfigError, TidingsError
from tidings.traces import compaction as job
from tidings.traces.compaction import SETTLE_S, Compaction, compact
from tidings.traces.files import listed_files
from tidings.traces.headline import read_tables
from tidings.traces.intake import read_through, take_in
from tidings.traces.live_files import TraceFiles
from tidings.traces.selection import trace_files

KILLED = 9

# A process that dies at the n-th call of a function, as by a kill or a power failure.
DYING = """
import os, sys, time
from pathlib import Path
from tidings.traces import compaction as job
folder, where, name, call = Path(sys.argv[1]), *sys.argv[2:4], int(sys.argv[4])
target = {"os": os, "Path": Path, "job": job, "writer": job.pq.ParquetWriter}[where]
real, calls = getattr(target, name), []
def dying(*given, **named):
    calls.append(given)
    if len(calls) == call:
        os._exit(9)
    return real(*given, **named)
setattr(target, name, dying)
job.compact(folder, 60.0, time.time())
"""


def now_compact(folder: Path) -> Compaction:
    return compact(folder, SETTLE_S, time.time())


def everything(folder: Path) -> dict[str, list[dict[str, object]]]:
    return {table: rows_in(rows) for table, rows in read_tables(folder).items()}


def names(folder: Path) -> set[str]:
    return {str(file.relative_to(folder)) for file in folder.rglob("*.parquet")}


def test_segments_become_one_file_per_run_and_table(tmp_path: Path) -> None:
    live_folder(tmp_path, "monday")
    live_folder(tmp_path, "tuesday")
    before = everything(tmp_path)
    done = now_compact(tmp_path)
    assert (done.segments, done.rows, done.cleared, done.left) == (20, 40, 0, 4)
    assert everything(tmp_path) == before
    gathered = {Path(file).parent.relative_to(tmp_path).as_posix() for file in done.files}
    assert gathered == {
        f"{table}/run={run}"
        for table in ("published", "delivered")
        for run in ("monday", "tuesday")
    }
    assert len(names(tmp_path)) == 8


def test_a_second_compaction_gathers_only_what_is_new(tmp_path: Path) -> None:
    live_folder(tmp_path)
    first = now_compact(tmp_path)
    assert now_compact(tmp_path).files == ()
    for number in (6, 7, 8):
        write_segment(tmp_path, "live", "b1", number, a_moment(number), AN_HOUR_AGO_S)
    before = everything(tmp_path)
    second = now_compact(tmp_path)
    assert second.segments == 6  # numbers 5, 6 and 7 of both tables
    assert not set(first.files) & set(second.files)
    assert everything(tmp_path) == before


def test_the_newest_and_the_youngest_segments_are_left_alone(tmp_path: Path) -> None:
    live_folder(tmp_path, segments=3)
    young = write_segment(tmp_path, "live", "b2", 0, a_moment(7))
    young += write_segment(tmp_path, "live", "b2", 1, a_moment(8))
    young += write_segment(tmp_path, "live", "b2", 2, a_moment(9))
    now_compact(tmp_path)
    left = {f"{table}/live-b1-000002.parquet" for table in ("published", "delivered")}
    left |= {str(file.relative_to(tmp_path)) for file in young}
    assert {name for name in names(tmp_path) if "gathered" not in name} == left


def test_a_broker_that_starts_again_numbers_on(tmp_path: Path) -> None:
    live_folder(tmp_path, segments=4)
    now_compact(tmp_path)
    again = TraceFiles(tmp_path, "live", "b1")
    for row in a_moment(20):
        again.rows[type(row)].append(row)
    again.close()
    assert (tmp_path / "published" / "live-b1-000004.parquet").exists()


@pytest.mark.parametrize(
    ("where", "name", "call"),
    [
        ("writer", "write_table", 1),  # nothing is written yet
        ("os", "replace", 1),  # the draft is whole, but has no name
        ("job", "onto_disk", 3),  # it has its name; all segments are still there
        ("Path", "unlink", 4),  # one half of the segments is gone
        ("os", "replace", 2),  # one table is done, the other not
    ],
)
def test_a_kill_between_two_steps_loses_and_doubles_nothing(
    where: str, name: str, call: int, tmp_path: Path
) -> None:
    before = everything(live_folder(tmp_path))
    command = [sys.executable, "-c", DYING, str(tmp_path), where, name, str(call)]
    assert subprocess.run(command, timeout=120).returncode == KILLED
    assert everything(tmp_path) == before
    now_compact(tmp_path)
    assert everything(tmp_path) == before
    assert len(names(tmp_path)) == 4  # no draft and no segment is left over, but the newest
    assert not take_in(tmp_path).quarantined


def test_a_copy_made_before_is_still_known_as_one(tmp_path: Path) -> None:
    before = everything(live_folder(tmp_path))
    copy = tmp_path / "published" / "backup"
    copy.mkdir()
    for file in (tmp_path / "published").glob("*.parquet"):
        (copy / f"copy-of-{file.name}").write_bytes(file.read_bytes())
    now_compact(tmp_path)
    assert everything(tmp_path) == before
    assert len(take_in(tmp_path).quarantined) == 6


def test_a_bad_segment_stays_where_it_is(tmp_path: Path) -> None:
    live_folder(tmp_path)
    bad = tmp_path / "published" / "live-b1-000002.parquet"
    bad.write_bytes(bad.read_bytes()[:-20])
    done = now_compact(tmp_path)
    assert (done.segments, bad.exists()) == (9, True)
    with pytest.raises(ConfigError, match="live-b1-000002"):
        everything(tmp_path)


def zeroed_pages(file: Path) -> Path:
    """A file, as old as before, whose footer is good and whose rows cannot be read."""
    written_at = file.stat().st_mtime
    footer_bytes = int.from_bytes(file.read_bytes()[-8:-4], "little")
    content = bytearray(file.read_bytes())
    content[4 : -8 - footer_bytes] = bytes(len(content) - 12 - footer_bytes)
    file.write_bytes(content)
    os.utime(file, (written_at, written_at))
    return file


def test_a_segment_with_bad_pages_stays_and_the_others_are_gathered(tmp_path: Path) -> None:
    live_folder(tmp_path)
    bad = zeroed_pages(tmp_path / "published" / "live-b1-000002.parquet")
    assert pq.read_metadata(bad).num_rows == 2
    assert (now_compact(tmp_path).segments, bad.exists()) == (9, True)


def compacted_but_not_cleared(folder: Path) -> Path:
    """The gathered file of publications, beside whose segments it still lies."""
    live_folder(folder)
    segments = {f: f.read_bytes() for f in (folder / "published").glob("*.parquet")}
    now_compact(folder)
    for file, content in segments.items():
        file.write_bytes(content)
    (gathered,) = (folder / "published").rglob("gathered-*.parquet")
    return gathered


def test_each_gathered_file_is_read_once_before_segments_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gathered, read = compacted_but_not_cleared(tmp_path), list[Path]()
    monkeypatch.setattr(job, "check_pages", lambda table, file: read.append(file))
    assert now_compact(tmp_path).cleared == 5
    assert read == [gathered]


def test_segments_beside_a_gathered_file_with_bad_pages_stay_and_are_read(tmp_path: Path) -> None:
    gathered = zeroed_pages(compacted_but_not_cleared(tmp_path))
    assert now_compact(tmp_path).cleared == 0
    found = read_through(tmp_path)
    assert len(found.files["published"]) == 6
    assert [one.file for one in found.quarantined] == [str(gathered)]


def test_the_name_of_a_run_may_have_any_characters(tmp_path: Path) -> None:
    run = "a=b/c%d é [1]"
    for number in range(3):
        for table, rows in enumerate(("published", "delivered")):
            file = tmp_path / rows / f"odd-b1-{number:06}.parquet"
            whole = write_segment(tmp_path / "scratch", "odd", "b1", number, a_moment(number))
            found = pq.read_table(whole[table])
            column = [run] * found.num_rows
            file.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(found.set_column(0, found.schema.field(0), [column]), file)
    compact(tmp_path, 0.0, time.time() + 1)
    assert (tmp_path / "published" / "run=a%3Db%2Fc%25d é %5B1%5D").is_dir()
    assert {row["run"] for row in everything(tmp_path)["published"]} == {run}


def test_two_compactions_at_once_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_folder(tmp_path)
    monkeypatch.setattr(job, "_clear", lambda place: now_compact(tmp_path))
    with pytest.raises(TidingsError, match="being compacted already"):
        now_compact(tmp_path)


def test_files_that_vanish_while_they_are_listed_are_listed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {t: len(rows) for t, rows in everything(live_folder(tmp_path)).items()}
    stale = listed_files(tmp_path)
    now_compact(tmp_path)
    looks = iter([stale])
    monkeypatch.setattr(
        "tidings.traces.selection.listed_files",
        lambda folder: next(looks, None) or listed_files(folder),
    )
    files = trace_files(tmp_path)
    found = {t: sum(pq.read_metadata(f).num_rows for f in files[t]) for t in files}
    assert found == before


def test_a_folder_without_segments_is_left_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a folder without traces"):
        now_compact(tmp_path)
