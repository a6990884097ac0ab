"""Which files hold the same rows? Copies of a file, and segments that compaction has gathered.

A file is known by its fingerprint, the size and digest of its bytes, never by its name: a copied
folder has other names, and a broker that starts in an emptied folder uses its names again. A
gathered file lists the fingerprints of its segments in its metadata. So a segment that is still
there beside it (a compaction that was killed, a copy made before) is not read a second time.
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

SEGMENTS = b"segments"  # the entry in the metadata of a gathered file


class Fingerprint(Struct, frozen=True, array_like=True, order=True):
    """What a file is known by: only files of equal size need to be compared by digest."""

    size_bytes: int
    digest: str


class LeftOut(Struct, frozen=True):
    """A file that is not read, as its rows are in another."""

    file: Path
    other: Path
    shared: int = 0  # segments, if only some of them are in the other: those rows are not read

    def reason(self) -> str:
        """For a person: why it is not read."""
        if self.shared:
            return (
                f"shares {self.shared} of its segments with {self.other}, so its other rows are "
                f"not read either; remove one of the two"
            )
        return f"a copy: its rows are in {self.other}"


def fingerprint(file: Path) -> Fingerprint:
    """The fingerprint of a file, all of which is read for it."""
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    return Fingerprint(file.stat().st_size, digest)


def content_fingerprints(file: Path) -> frozenset[Fingerprint]:
    """The fingerprints of the segments that were gathered in the file, or else its own."""
    return gathered_fingerprints(file) or frozenset((fingerprint(file),))


def manifest(segments: Iterable[Fingerprint]) -> dict[bytes, bytes]:
    """What the metadata of a gathered file says of its segments."""
    return {SEGMENTS: msgspec.json.encode(list(segments))}


def gathered_fingerprints(file: Path) -> frozenset[Fingerprint]:
    """The segments that were gathered in the file; none if there are none, or if it is damaged."""
    try:
        found = pq.read_metadata(file).metadata or {}
        return frozenset(msgspec.json.decode(found.get(SEGMENTS, b"[]"), type=list[Fingerprint]))
    except FileNotFoundError:  # gathered just now: what was listed no longer holds
        raise
    except (pa.ArrowException, msgspec.DecodeError, ValueError, OSError):
        return frozenset()


def without_repeated_rows(files: Iterable[Path]) -> tuple[list[Path], list[LeftOut]]:
    """Files that together hold each row once, sorted; and the files that are left out for that."""
    ordered = sorted(files, key=lambda file: (len(file.parts), file))
    gathered = {file: held for file in ordered if (held := gathered_fingerprints(file))}
    holders, overlapping = _holders(gathered)
    refused = {left_out.file for left_out in overlapping}
    chosen = [file for file in gathered if file not in refused]
    plain = [file for file in ordered if file not in gathered]
    kept, copies = _without_copies([*chosen, *plain], holders)
    return sorted(kept), [*overlapping, *copies]


def _holders(
    gathered: Mapping[Path, frozenset[Fingerprint]],
) -> tuple[dict[Fingerprint, Path], list[LeftOut]]:
    """Which file holds each segment. The file with the most goes first, as others may be parts."""
    holders: dict[Fingerprint, Path] = {}
    overlapping = []
    for file, held in sorted(gathered.items(), key=lambda item: (-len(item[1]), item[0])):
        shared = held & holders.keys()
        if shared:
            some = 0 if shared == held else len(shared)
            overlapping.append(LeftOut(file, holders[min(shared)], some))
        else:
            holders |= dict.fromkeys(held, file)
    return holders, overlapping


def _without_copies(
    files: list[Path], holders: Mapping[Fingerprint, Path]
) -> tuple[list[Path], list[LeftOut]]:
    """Only files whose size occurs twice are read to compare them."""
    sizes = {file: file.stat().st_size for file in files}
    common = Counter(sizes.values()) + Counter({segment.size_bytes for segment in holders})
    known, kept, copies = dict(holders), [], []
    for file in files:
        own = fingerprint(file) if common[sizes[file]] > 1 else None
        if own is not None and own in known:
            copies.append(LeftOut(file, known[own]))
            continue
        kept.append(file)
        if own is not None:
            known[own] = file
    return kept, copies
