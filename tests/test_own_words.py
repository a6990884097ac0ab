"""What stands in this repository is in our own words: no eight of them in a row are a paper's.

The papers lie in a folder beside the repository, which not everybody has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from support.pages import ROOT

PAPERS = ROOT.parent / "shared" / "papers"
TITLES = (  # these may be named
    "Achieving Bounded Delay on Message Delivery in Publish/Subscribe Systems",
    "Delay-Cognizant Reliable Delivery for Publish/Subscribe Overlay Networks",
    "Efficacy of Techniques for Responsiveness in a Wide-Area Publish/Subscribe System",
    "Reliable Routing of Event Notifications over P2P Overlay Routing Substrate in Event Based "
    "Middleware",
    "Semi-probabilistic Routing for Highly Dynamic Networks",
)
FOLDERS = ("src", "tests", "bench", "docs", "studies", "scenarios")
KINDS = {".py", ".md", ".toml", ".html", ".svg"}
LONGEST = 7  # words in a row that may be the same by chance

Run = tuple[str, ...]


def runs_of(text: str) -> Iterator[Run]:
    words = re.findall(r"\w+", text.lower())
    return zip(*(words[first:] for first in range(LONGEST + 1)), strict=False)


def runs_of_papers(folder: Path, titles: Sequence[str]) -> set[Run]:
    papers = {run for paper in folder.glob("*.txt") for run in runs_of(paper.read_text())}
    return papers.difference(*map(runs_of, titles))


def files_of(root: Path) -> Iterator[Path]:
    """All that we wrote, without what is hidden or built."""
    for path in sorted([*root.glob("*"), *(p for f in FOLDERS for p in (root / f).rglob("*"))]):
        inside = path.relative_to(root).parts
        if path.suffix in KINDS and not any(p == "build" or p.startswith(".") for p in inside):
            yield path


def copied(root: Path, known: set[Run]) -> Iterator[str]:
    """Each stretch that stands in a paper too: its file, the line it begins in, and its words."""
    for path in files_of(root):
        text = path.read_text()
        hits = {at for at, run in enumerate(runs_of(text)) if run in known}
        words = list(re.finditer(r"\w+", text.lower())) if hits else []
        for first in sorted(at for at in hits if at - 1 not in hits):
            last = next(at for at in range(first, len(words)) if at + 1 not in hits) + LONGEST
            line = text.lower().count("\n", 0, words[first].start()) + 1
            said = " ".join(word.group() for word in words[first : last + 1])
            yield f"{path.relative_to(root)}:{line}: {said}"


@pytest.mark.skipif(not PAPERS.is_dir(), reason=f"the papers are not here: no folder {PAPERS}")
def test_no_eight_words_in_a_row_stand_as_in_a_paper() -> None:
    known = runs_of_papers(PAPERS, TITLES)
    assert known, f"{PAPERS} has no papers"
    found = list(copied(ROOT, known))
    assert not found, "\n".join(["say it in our own words:", *found])


def test_a_sentence_of_a_paper_is_found_across_lines_but_a_title_or_seven_words_are_not(
    tmp_path: Path,
) -> None:
    title = "A Study of Slow Letters and of the Roads That They Travel"
    sentence = "Letters by night coach come two days before all others"
    (tmp_path / "paper.txt").write_text(f"# {title}\n\nBy nobody. {sentence}. So much for them.")
    known = runs_of_papers(tmp_path, [title])

    page = f"# *{title}*\n#\n# It says: letters BY night\n# coach come two days before all others."
    for name in ("docs/deep/page.md", "top.toml", "build/page.md", ".hidden/page.md", "src/a.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(page)
    (tmp_path / "seven.md").write_text("Coach: come two days before all others! (Seven words.)")
    assert list(copied(tmp_path, known)) == [
        f"{name}:3: {sentence.lower()}" for name in ("docs/deep/page.md", "top.toml")
    ]
