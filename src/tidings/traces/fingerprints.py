"""Which files hold the same rows? Copies of a file, and segments that compaction has gathered.

A file is known by its content, the digest of its bytes, never by its name: a copied folder has
other names, and a broker that starts in an emptied folder uses its names again. A gathered file
says in its metadata which segments are in it, so that a segment which is still there beside it (a
compaction that was killed, a copy made before) is not read a second time.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

SEGMENTS = b"segments"  # in the metadata of a gathered file: its segments


class Segment(Struct, frozen=True, array_like=True, order=True):
    """A file as it is known: only files of equal size need to be compared by digest."""

    size_bytes: int
    digest: str


class Twice(Struct, frozen=True):
    """A file that is left out, as its rows are in another."""

    file: Path
    other: Path
    shared: int = 0  # segments, if only some of them are in another: those rows are not read


def segment_of(file: Path) -> Segment:
    """The file as it is known, after all of it was read."""
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    return Segment(file.stat().st_size, digest)


def content_of(file: Path) -> frozenset[Segment]:
    """What was gathered in the file, or else the file itself."""
    return gathered_segments(file) or frozenset((segment_of(file),))


def manifest(segments: Iterable[Segment]) -> dict[bytes, bytes]:
    """What the metadata of a gathered file says of its segments."""
    return {SEGMENTS: msgspec.json.encode(list(segments))}


def gathered_segments(file: Path) -> frozenset[Segment]:
    """The segments in a file; none if it was not gathered, or cannot be read."""
    try:
        found = pq.read_metadata(file).metadata or {}
        return frozenset(msgspec.json.decode(found.get(SEGMENTS, b"[]"), type=list[Segment]))
    except FileNotFoundError:  # gathered just now: what was listed no longer holds
        raise
    except (pa.ArrowException, msgspec.DecodeError, ValueError, OSError):
        return frozenset()


def distinct(files: Iterable[Path]) -> tuple[list[Path], list[Twice]]:
    """The files of which each row is read once, sorted, and those that are left out."""
    ordered = sorted(files, key=lambda file: (len(file.parts), file))
    gathered = {file: held for file in ordered if (held := gathered_segments(file))}
    holders, left_out = _holders(gathered)
    plain = [file for file in ordered if file not in gathered]
    kept, copies = _without_copies([*_chosen(gathered, left_out), *plain], holders)
    return sorted(kept), [*left_out, *copies]


def _chosen(gathered: Iterable[Path], left_out: list[Twice]) -> list[Path]:
    refused = {twice.file for twice in left_out}
    return [file for file in gathered if file not in refused]


def _holders(
    gathered: Mapping[Path, frozenset[Segment]],
) -> tuple[dict[Segment, Path], list[Twice]]:
    """Which file has each segment; the one with the most goes first, as others may be parts."""
    holders: dict[Segment, Path] = {}
    left_out = []
    for file, held in sorted(gathered.items(), key=lambda item: (-len(item[1]), item[0])):
        shared = held & holders.keys()
        if shared:
            some = 0 if shared == held else len(shared)
            left_out.append(Twice(file, holders[min(shared)], some))
        else:
            holders |= dict.fromkeys(held, file)
    return holders, left_out


def _without_copies(
    files: list[Path], holders: Mapping[Segment, Path]
) -> tuple[list[Path], list[Twice]]:
    """Only files whose size occurs twice are read to compare them."""
    sizes = {file: file.stat().st_size for file in files}
    common = Counter(sizes.values()) + Counter({segment.size_bytes for segment in holders})
    known, kept, left_out = dict(holders), [], []
    for file in files:
        segment = segment_of(file) if common[sizes[file]] > 1 else None
        if segment is not None and segment in known:
            left_out.append(Twice(file, known[segment]))
            continue
        kept.append(file)
        if segment is not None:
            known[segment] = file
    return kept, left_out
