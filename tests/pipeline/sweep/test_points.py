"""Drafts of a sweep that was killed go; those of one that runs in the same folder stay."""

import os
import time
from pathlib import Path

import pytest

from tidings.pipeline.sweep.points import STALE_DRAFT_S, remove_stale_drafts


def a_draft(out: Path, table: str, name: str, age_s: float) -> Path:
    draft = out / table / "study=s" / "strategy=d-tree" / f".{name}.parquet"
    draft.parent.mkdir(parents=True, exist_ok=True)
    draft.touch()
    os.utime(draft, (time.time() - age_s,) * 2)
    return draft


def test_drafts_go_when_their_run_has_written_nothing_for_long(tmp_path: Path) -> None:
    old, new = 2 * STALE_DRAFT_S, 0.5 * STALE_DRAFT_S
    killed = [a_draft(tmp_path, table, "p1-aaaa", old) for table in ("published", "delivered")]
    # One table of this run was full long ago, and another one is being written.
    running = [a_draft(tmp_path, "published", "p1-bbbb", old)]
    running += [a_draft(tmp_path, "delivered", "p1-bbbb", new)]
    whole = killed[0].with_name("p2.parquet")
    whole.touch()
    os.utime(whole, (0, 0))
    remove_stale_drafts(tmp_path)
    assert [draft.exists() for draft in (*killed, *running, whole)] == [
        False,
        False,
        True,
        True,
        True,
    ]


def test_a_draft_that_becomes_a_file_meanwhile_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = a_draft(tmp_path, "published", "p1-aaaa", 2 * STALE_DRAFT_S)
    listed = [killed.with_name(".p0-bbbb.parquet"), killed]
    monkeypatch.setattr(Path, "glob", lambda *_: iter(listed))
    remove_stale_drafts(tmp_path)
    assert not killed.exists()
