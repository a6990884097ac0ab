"""Segments are admitted by time, each once, also after a crash."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.traces import a_delivery, a_publication, tables_of, write_tables

from tidings.pipeline.watch.admission import Admissions
from tidings.pipeline.watch.wishes import LatestWishes
from tidings.traces.fingerprints import fingerprint, manifest

ALL = 1_000_000


def write_segment(traces: Path, number: int, at: float, count: int = 10) -> None:
    """Publications, and deliveries a moment later, of one second."""
    sent = [a_publication(100 * number + n, at + n / count, ("b2/x:t",)) for n in range(count)]
    taken = [a_delivery(100 * number + n, at + n / count + 0.1, "b2/x:t") for n in range(count)]
    write_tables(traces, tables_of({"r": [*sent, *taken]}), f"r-b1-{number:06}")


def admissions_of(traces: Path, folder: Path, warn: Callable[[str], None] = print) -> Admissions:
    return Admissions(traces, folder, LatestWishes(traces, warn), warn)


def admitted(folder: Path) -> list[list[float]]:
    """The instants in each round."""
    files = sorted((folder / "rows").glob("*.parquet"))
    return [sorted(pq.read_table(file)["recorded_at"].to_pylist()) for file in files]


def kill_before_the_last_file(folder: Path) -> None:
    """As if the last round had been noted, but not written."""
    max((folder / "rows").glob("*.parquet")).unlink()


def gather(traces: Path, files: list[Path]) -> None:
    """A file of publications beside those it holds."""
    rows = pq.read_table(files)
    said = rows.schema.metadata | manifest(map(fingerprint, files))
    pq.write_table(rows.replace_schema_metadata(said), traces / "published" / "gathered.parquet")


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    folder = tmp_path / "traces"
    for number, at in ((3, 20.0), (1, 0.0), (2, 10.0)):
        write_segment(folder, number, at)
    return folder


def test_what_is_next_in_time_comes_first_with_both_tables(traces: Path, tmp_path: Path) -> None:
    admissions = admissions_of(traces, tmp_path / "rounds")
    while admissions.admit(20, 1.0):
        pass
    spans = [(times[0], len(times)) for times in admitted(tmp_path / "rounds")]
    assert spans == [(0.0, 20), (10.0, 20), (20.0, 20)]
    assert (admissions.rows, admissions.last_at) == (60, pytest.approx(21.0))


def test_rows_that_would_come_late_are_taken_along(traces: Path, tmp_path: Path) -> None:
    write_segment(traces, 4, 0.5, count=50)
    long = traces / "published" / "r-b1-000004.parquet"
    rows = [a_publication(900 + n, 0.5 + n, ("b2/x:t",)) for n in range(15)]
    pq.write_table(tables_of({"r": rows})["published"], long)
    admissions = admissions_of(traces, tmp_path / "rounds")
    assert admissions.admit(50, 1.0)
    (first,) = admitted(tmp_path / "rounds")
    assert first[-1] == 14.5
    assert len(first) == 20 + 15 + 50 + 20  # the second at 10 as well, but not the one at 20


def test_nothing_is_admitted_twice_after_a_restart(traces: Path, tmp_path: Path) -> None:
    folder = tmp_path / "rounds"
    admissions_of(traces, folder).admit(20, 1.0)
    again = admissions_of(traces, folder)
    assert again.admit(ALL, 1.0)
    assert not again.admit(ALL, 1.0)
    assert [len(times) for times in admitted(folder)] == [20, 40]


def test_how_late_it_was_is_known_after_a_restart(traces: Path, tmp_path: Path) -> None:
    admissions = admissions_of(traces, tmp_path / "rounds")
    admissions.admit(ALL, 1.0)
    admissions.tell_time(99.0)
    assert admissions_of(traces, tmp_path / "rounds").last_at == admissions.last_at < 99.0


def test_a_round_that_was_noted_but_not_written_is_written(traces: Path, tmp_path: Path) -> None:
    folder = tmp_path / "rounds"
    admissions_of(traces, folder).admit(20, 1.0)
    (file,) = (folder / "rows").glob("*.parquet")
    before = pq.read_table(file)
    file.unlink()
    with (folder / "rounds.jsonl").open("ab") as notes:
        notes.write(b'{"number":2,"fi')  # the next note was cut off
    again = admissions_of(traces, folder)
    assert pq.read_table(file) == before
    assert again.admit(ALL, 1.0)
    assert [len(times) for times in admitted(folder)] == [20, 40]


def test_a_round_that_an_earlier_version_wrote_is_written_under_todays_names(
    traces: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "rounds"
    admissions_of(traces, folder).admit(20, 1.0)
    (file,) = (folder / "rows").glob("*.parquet")
    before = pq.read_table(file)
    pq.write_table(before.rename_columns({"recorded_at": "at"}), file)
    admissions_of(traces, folder)
    assert pq.read_table(file) == before


def test_a_round_that_was_written_is_not_written_again(traces: Path, tmp_path: Path) -> None:
    admissions_of(traces, tmp_path / "rounds").admit(ALL, 1.0)
    (file,) = (tmp_path / "rounds" / "rows").glob("*.parquet")
    before = file.stat()
    admissions_of(traces, tmp_path / "rounds")
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_what_is_gathered_between_two_watches_is_not_admitted_again(
    traces: Path, tmp_path: Path
) -> None:
    admissions_of(traces, tmp_path / "rounds").admit(ALL, 1.0)
    files = sorted((traces / "published").glob("*.parquet"))
    gather(traces, files)
    for file in files:
        file.unlink()
    assert not admissions_of(traces, tmp_path / "rounds").admit(ALL, 1.0)


def test_a_name_that_is_used_again_has_new_rows(traces: Path, tmp_path: Path) -> None:
    admissions = admissions_of(traces, tmp_path / "rounds")
    admissions.admit(ALL, 1.0)
    shutil.rmtree(traces)
    assert not admissions.admit(ALL, 1.0)
    write_segment(traces, 1, 30.0)
    assert admissions.admit(ALL, 1.0)
    assert admissions.rows == 80


def test_a_name_that_is_used_again_has_new_rows_after_a_restart_too(
    traces: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "rounds"
    admissions_of(traces, folder).admit(ALL, 1.0)
    shutil.rmtree(traces)
    write_segment(traces, 1, 30.0)
    again = admissions_of(traces, folder)
    assert again.admit(ALL, 1.0)
    assert not again.admit(ALL, 1.0)
    assert (again.rows, again.last_at) == (20, pytest.approx(31.0))
    assert not admissions_of(traces, folder).admit(ALL, 1.0)


def test_a_round_is_not_repeated_with_rows_of_other_segments(traces: Path, tmp_path: Path) -> None:
    folder = tmp_path / "rounds"
    admissions_of(traces, folder).admit(20, 1.0)
    kill_before_the_last_file(folder)
    shutil.rmtree(traces)
    write_segment(traces, 1, 30.0)
    for _ in range(2):  # the second start finds what the first has noted
        admissions = admissions_of(traces, folder)
    while admissions.admit(ALL, 1.0):
        pass
    assert [times[0] for times in admitted(folder)] == [30.0]


def test_what_was_gathered_before_its_round_was_repeated_is_not_lost_by_a_second_kill(
    traces: Path, tmp_path: Path
) -> None:
    folder, warnings = tmp_path / "rounds", list[str]()
    admissions_of(traces, folder).admit(20, 1.0)
    kill_before_the_last_file(folder)
    published = sorted((traces / "published").glob("*.parquet"))[:1]
    gather(traces, published)
    published[0].unlink()
    admissions_of(traces, folder, warnings.append)  # writes the deliveries, and is killed
    assert [len(times) for times in admitted(folder)] == [10]
    admissions = admissions_of(traces, folder, warnings.append)
    while admissions.admit(ALL, 1.0):
        pass
    assert sum(len(times) for times in admitted(folder)) == 60
    assert (admissions.refused, warnings) == (0, [])


def test_copies_and_gathered_files_of_what_was_admitted_are_passed_over(
    traces: Path, tmp_path: Path
) -> None:
    admissions = admissions_of(traces, tmp_path / "rounds")
    admissions.admit(ALL, 1.0)
    shutil.copytree(traces / "delivered", traces / "delivered" / "copy")
    gather(traces, sorted((traces / "published").glob("*.parquet")))
    assert not admissions.admit(ALL, 1.0)
    assert admissions.refused == 0


def test_a_segment_that_was_gathered_before_its_turn_is_found_in_its_new_place(
    traces: Path, tmp_path: Path
) -> None:
    warnings: list[str] = []
    admissions = admissions_of(traces, tmp_path / "rounds", warnings.append)
    admissions.admit(20, 1.0)
    files = sorted((traces / "published").glob("*.parquet"))[1:]
    gather(traces, files)
    for file in files:
        file.unlink()
    while admissions.admit(20, 1.0):
        pass
    times = [at for part in admitted(tmp_path / "rounds") for at in part]
    assert len(times) == 60
    assert (admissions.refused, warnings) == (0, [])
