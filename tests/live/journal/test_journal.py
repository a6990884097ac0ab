"""Whatever happens to the files of a store, what was lost is told, and the rest is there."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.builders import a_destination, a_message, a_parcel

from tidings.live.journal import journal as journal_module
from tidings.live.journal.earlier import FORMAT_OF_SQLITE
from tidings.live.journal.frames import MARKER, frames_in
from tidings.live.store import MessageStore

MESSAGES = 20


def a_store(folder: Path, messages: int = MESSAGES, rounds: int = 4) -> Path:
    """The files of a store whose process was killed, with messages from several commits."""
    path = folder / "n1.journal"
    store = MessageStore(path)
    for number in range(messages):
        payload = MARKER + bytes(number)  # which may hold anything
        store.keep(a_parcel("b2", "b3", message=a_message(payload=payload, id=number)), 0.0)
        if number % (messages // rounds) == 0:
            store.commit()
    store.keep(a_parcel("b2", message=a_message(id=777)), 0.0)
    store.commit()
    store.forget(777, ("b2",))
    store.forget(0, ("b3",))
    store.commit()
    copy_of(folder, folder / "killed")  # closing would write to them
    store.close()
    return folder / "killed" / "n1.journal"


def copy_of(folder: Path, target: Path) -> Path:
    target.mkdir(parents=True, exist_ok=True)
    for suffix in (".journal", ".committed"):
        shutil.copy(folder / f"n1{suffix}", target)
    return target


def reopened(path: Path) -> tuple[set[int], list[str]]:
    """The messages that a new incarnation finds, and what it says; the one after is content."""
    store = MessageStore(path)
    found, said = {parcel.message.id for parcel in store.restore(0.0)}, store.reports
    store.close()
    again = MessageStore(path)
    assert {parcel.message.id for parcel in again.restore(0.0)} == found
    assert again.reports == [], "what was told is put right"
    again.close()
    return found, said


def flip(path: Path, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)


def test_what_a_killed_process_leaves_is_whole(tmp_path: Path) -> None:
    assert reopened(a_store(tmp_path)) == (set(range(MESSAGES)), [])


@pytest.mark.parametrize("number", range(0, MESSAGES, 3))
def test_one_flipped_bit_costs_one_message_and_that_is_told(tmp_path: Path, number: int) -> None:
    path = a_store(tmp_path)
    frames = list(frames_in(path.read_bytes()))
    frame = frames[1 + number]  # the first says which store it is
    flip(path, 8 * (frame.start + (frame.stop - frame.start) * number // MESSAGES))
    damaged = path.read_bytes()
    found, (said, aside) = reopened(path)
    assert set(range(MESSAGES)) - found == {number}
    assert f"1 of {MESSAGES} messages is lost" in said
    assert f"The {MESSAGES - 1} that can be read are taken up" in said
    kept_as = path.with_name("n1.journal.damaged-1")
    assert aside == f"the damaged file is kept as {kept_as}"
    assert kept_as.read_bytes() == damaged


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_bit_flipped_anywhere_is_told_and_costs_one_message_at_most(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = a_store(tmp_path_factory.mktemp("store"))
    victim = path.with_suffix(data.draw(st.sampled_from([".journal", ".journal", ".committed"])))
    end = list(frames_in(path.read_bytes()))[-1].stop
    end = min(end, victim.stat().st_size)
    flip(victim, data.draw(st.integers(0, 8 * end - 1)))
    found, said = reopened(path)
    lost = set(range(MESSAGES)) - found
    assert len(lost) <= (victim == path)
    assert str(victim) in said[0]
    told = f"{len(lost)} of {MESSAGES} messages is lost" if lost else "is damaged"
    assert told in said[0]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_file_that_ends_too_early_is_told_with_what_it_held(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = a_store(tmp_path_factory.mktemp("store"))
    end = list(frames_in(path.read_bytes()))[-1].stop
    os.truncate(path, data.draw(st.integers(0, end - 1)))
    found, (said, *_) = reopened(path)
    lost = len(set(range(MESSAGES)) - found)
    bounds = [int(word) for word in said.split(" of ")[1].split() if word.isdigit()]
    assert "is damaged" in said
    assert lost == 0 or min(bounds) <= lost <= max(bounds)


def test_what_a_crash_left_unfinished_was_promised_to_nobody_and_is_no_damage(
    tmp_path: Path,
) -> None:
    path = a_store(tmp_path)
    before = list(frames_in(path.read_bytes()))[-1].stop
    store = MessageStore(path)
    store.restore(0.0)
    for number in (100, 101, 102):
        store.keep(a_parcel("b2", message=a_message(payload=bytes(50), id=number)), 0.0)
    note = path.with_suffix(".committed").read_bytes()
    store.commit()
    whole = path.read_bytes()
    store.close()
    end = list(frames_in(whole))[-1].stop
    for torn in (whole[: before + 1], whole[: end - 1], whole[:before] + bytes(9_000)):
        path.write_bytes(torn)
        path.with_suffix(".committed").write_bytes(note)
        found, said = reopened(path)
        assert (found >= set(range(MESSAGES)), said) == (True, [])
    # Pages reach the disk in any order: the first of the last commit may be missing.
    path.write_bytes(whole[:before] + bytes(40) + whole[before + 40 :])
    path.with_suffix(".committed").write_bytes(note)
    assert reopened(path) == (set(range(MESSAGES)), [])


def test_the_same_gap_in_what_was_committed_is_damage(tmp_path: Path) -> None:
    path = a_store(tmp_path)
    note = path.with_suffix(".committed").read_bytes()
    last = list(frames_in(path.read_bytes()))[-2]
    flip(path, 8 * last.start)
    path.with_suffix(".committed").write_bytes(note)
    assert "none of 20 messages is lost" in reopened(path)[1][0]


Change = Callable[[Path, Path], None]


def no_journal(path: Path, _old: Path) -> None:
    path.unlink()


def no_note(path: Path, _old: Path) -> None:
    path.with_suffix(".committed").unlink()


def an_older_journal(path: Path, old: Path) -> None:
    shutil.copy(old / "n1.journal", path)


def an_older_note(path: Path, old: Path) -> None:
    shutil.copy(old / "n1.committed", path.with_suffix(".committed"))


def another_store_s_note(path: Path, old: Path) -> None:
    MessageStore(old / "n2.journal").close()
    shutil.copy(old / "n2.committed", path.with_suffix(".committed"))


def an_empty_journal(path: Path, _old: Path) -> None:
    path.write_bytes(b"")


def garbage(path: Path, _old: Path) -> None:
    path.write_bytes(bytes(range(256)) * 50)


@pytest.mark.parametrize(
    ("change", "left", "told"),
    [
        (no_journal, 0, ["n1.journal is missing: the 20 messages in it are lost"]),
        (an_empty_journal, 0, ["n1.journal is damaged", "20 of 20 messages are lost"]),
        (garbage, 0, ["n1.journal is damaged", "20 of 20 messages are lost"]),
        (an_older_journal, 5, ["n1.journal is damaged", "and 20 of 20 messages are lost"]),
        (no_note, 20, ["n1.committed is missing", "n1.journal has lost its end cannot be told"]),
        (another_store_s_note, 20, ["n1.committed belongs to another store", "cannot be told"]),
        (an_older_note, 20, []),  # the journal is whole, and longer than it had to be
    ],
)
def test_a_file_that_is_gone_or_another_is_told(
    tmp_path: Path, change: Change, left: int, told: list[str]
) -> None:
    path = a_store(tmp_path)
    older = tmp_path / "older"
    store = MessageStore(older / "n1.journal")
    for number in range(5):
        store.keep(a_parcel("b2", message=a_message(id=number)), 0.0)
    store.close()
    if change in (an_older_journal, an_older_note):
        # The same store, when it held five messages, and then long after.
        path, store = older / "n1.journal", MessageStore(older / "n1.journal")
        copy_of(older, tmp_path / "copy")
        store.restore(0.0)
        for number in range(5, 20):
            store.keep(a_parcel("b2", message=a_message(id=number)), 0.0)
        store.close()
        older = tmp_path / "copy"
    change(path, older)
    found, said = reopened(path)
    assert len(found) == left
    assert bool(said) == bool(told)
    if change is an_older_journal:
        assert "15 of 20 messages are lost" in said[0]
    else:
        assert all(words in said[0] for words in told)


# ---- compaction


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "LEAST_COMPACTED_BYTES", 20_000)


def busy(path: Path, rounds: int = 300) -> MessageStore:
    """A store that has handed on all but what came first, last, or is owed to one of two."""
    store = MessageStore(path)
    for number in range(rounds):
        store.keep(a_parcel("b2", "b3", message=a_message(payload=bytes(200), id=number)), 0.0)
        if number > 1:
            store.forget(number - 1, ("b2", "b3"))
        if number == 0:
            store.commit()
            store.forget(0, ("b2",))
        store.commit()
    return store


@pytest.mark.usefixtures("soon")
def test_a_journal_stays_small_however_much_passes_through_it(tmp_path: Path) -> None:
    path = tmp_path / "n1.journal"
    store = busy(path)
    frames = list(frames_in(path.read_bytes()))
    assert frames[-1].stop < 25_000
    assert frames[-1].serial > 600
    copy_of(tmp_path, tmp_path / "killed")
    store.close()
    assert reopened(tmp_path / "killed" / "n1.journal") == ({0, 299}, [])
    again = MessageStore(path)
    owed = {p.message.id: {d.broker for d in p.destinations} for p in again.restore(0.0)}
    again.close()
    assert owed == {0: {"b3"}, 299: {"b2", "b3"}}


@pytest.mark.usefixtures("soon")
def test_a_store_that_has_no_room_to_compact_goes_on(tmp_path: Path) -> None:
    (tmp_path / "n1.draft").mkdir()  # so that nothing can be written there
    (tmp_path / "n1.journal").touch()
    path = tmp_path / "n1.journal"
    with pytest.raises(Exception, match="cannot be used: Is a directory"):
        MessageStore(path)
    (tmp_path / "n1.draft").rmdir()
    MessageStore(path).close()
    (tmp_path / "n1.draft").mkdir()
    store = busy(path)
    store.close()
    assert path.stat().st_size > 40_000
    assert reopened(path) == ({0, 299}, [])


# ---- what an earlier version has left


def an_sqlite_store(path: Path, messages: int, version: int = FORMAT_OF_SQLITE) -> None:
    encode = msgspec.msgpack.Encoder().encode
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode = WAL")
    database.executescript(
        "CREATE TABLE message (id INTEGER PRIMARY KEY, stored_at REAL NOT NULL, envelope BLOB);"
        "CREATE TABLE owed (message INTEGER, broker TEXT, destination BLOB,"
        " PRIMARY KEY (message, broker)) WITHOUT ROWID;"
        f"PRAGMA user_version = {version};"
    )
    for number in range(messages):
        envelope = a_parcel("b2", message=a_message(id=number)).stored(1.0, ())
        database.execute("INSERT INTO message VALUES (?, 5.0, ?)", (number, encode(envelope)))
        for broker in ("b2", "b3"):
            row = (number, broker, encode(a_destination(broker)))
            database.execute("INSERT INTO owed VALUES (?, ?, ?)", row)
    database.commit()
    database.close()


def test_the_messages_of_an_earlier_version_are_taken_up_once_and_the_file_is_kept(
    tmp_path: Path,
) -> None:
    an_sqlite_store(tmp_path / "n1.db", 30)
    store = MessageStore(tmp_path / "n1.journal", wall=lambda: 15.0)
    parcels = store.restore(100.0)
    assert {p.message.id for p in parcels} == set(range(30))
    assert {tuple(d.broker for d in p.destinations) for p in parcels} == {("b2", "b3")}
    assert {p.born_at for p in parcels} == {89.0}
    store.forget(7, ("b2", "b3"))
    store.close()
    assert (tmp_path / "n1.db.taken-up").exists()
    assert reopened(tmp_path / "n1.journal") == (set(range(30)) - {7}, [])


@pytest.mark.parametrize("damage", ["version", "torn", "busy"])
def test_an_earlier_store_that_cannot_be_read_is_left_alone_with_words_what_to_do(
    tmp_path: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "n1.db"
    an_sqlite_store(path, 500, version=9 if damage == "version" else FORMAT_OF_SQLITE)
    monkeypatch.setattr("tidings.live.journal.earlier.LOCKED_WITHIN_S", 0.1)
    user = sqlite3.connect(path)
    if damage == "torn":
        os.truncate(path, path.stat().st_size // 2)
    elif damage == "busy":
        user.execute("PRAGMA locking_mode = EXCLUSIVE")
        user.execute("BEGIN IMMEDIATE")
    before = path.read_bytes()
    with pytest.raises(Exception, match="move this store of an earlier version away"):
        MessageStore(tmp_path / "n1.journal")
    user.close()
    assert path.read_bytes() == before
    assert not (tmp_path / "n1.journal").exists()
