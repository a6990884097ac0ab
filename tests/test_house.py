"""Is the house in order? Sizes, module heads, names, rooms, and pages that tell the truth.

A limit that is passed is reported by name. What has a reason to pass it stands in a table here,
with that reason, and leaves the table as soon as it keeps to the limit.
"""

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent
PACKAGE = PROJECT / "src" / "tidings"
DECISIONS = PROJECT / "docs" / "decisions"

MOST_FILE_LINES = 300
MOST_FUNCTION_LINES = 40
MOST_HEAD_LINES = 12  # of a module's docstring, before it needs sub-headings
MOST_MODULES = 15  # in a folder, before it is two rooms

LONG_FILES = {
    "broker/broker.py": "all inputs of the state machine, and the straight line of a message",
    "sim/world.py": "the one interpreter of effects in virtual time",
}
LONG_FUNCTIONS = {
    "cli/analyse.py: analyse": "a command's signature is its help",
    "cli/learn.py: learn": "a command's signature is its help",
    "cli/pub.py: pub": "a command's signature is its help",
    "cli/study.py: run_study": "a command's signature is its help",
    "cli/sub.py: sub": "a command's signature is its help",
    "cli/up.py: up": "a command's signature is its help",
    "cli/watch.py: watch": "a command's signature is its help",
    "mqtt/publishing.py: take_publishes": "one loop that is run for every message, without calls",
}
WIDE_FOLDERS = {"cli": "one module for each command"}

# Folders of tests that are about several rooms at once.
ACROSS_ROOMS = {"support", "properties", "parity", "determinism", "conformance", "faults"}

MODULES = {str(path.relative_to(PACKAGE)): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def trees() -> dict[str, ast.Module]:
    """All modules, parsed by the one worker that needs them and not by all that collect tests."""
    return {name: ast.parse(path.read_text()) for name, path in MODULES.items()}


def rooms() -> list[str]:
    return sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists())


def functions(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Each with its name and its lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def test_no_file_grows_beyond_one_reading() -> None:
    long = {name for name, path in MODULES.items() if lines_of(path) > MOST_FILE_LINES}
    assert long == set(LONG_FILES)


def lines_of(path: Path) -> int:
    return len(path.read_text().splitlines())


def test_no_function_grows_beyond_a_screen() -> None:
    long = {
        f"{name}: {function}"
        for name, tree in trees().items()
        for function, lines in functions(tree)
        if lines > MOST_FUNCTION_LINES
    }
    assert long == set(LONG_FUNCTIONS)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_opens_with_what_it_is_about(name: str) -> None:
    head = ast.get_docstring(trees()[name])
    assert head, f"{name} has no docstring"
    first = head.splitlines()[0]
    assert first.endswith((".", "?", ":", ",")) or len(head.splitlines()) > 1, first
    if len(head.splitlines()) > MOST_HEAD_LINES:
        assert re.search(r"^-{3,}$", head, re.MULTILINE), f"{name}: a long head has sub-headings"


def test_no_two_public_classes_have_one_name() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for name, tree in trees().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(name)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_no_folder_is_a_heap() -> None:
    counts: dict[str, int] = defaultdict(int)
    for name in MODULES:
        folder, _, module = name.rpartition("/")
        counts[folder] += module not in ("__init__.py", "__main__.py")
    wide = {folder for folder, count in counts.items() if count > MOST_MODULES}
    assert wide <= set(WIDE_FOLDERS)


def test_every_room_has_its_place_in_the_layers() -> None:
    contracts = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = (c["layers"] for c in contracts["contracts"] if c["id"] == "downwards")
    placed = {room.strip(" ()") for layer in layers for room in layer.split("|")}
    assert set(rooms()) <= placed


def test_tests_mirror_the_rooms() -> None:
    folders = {path.parent for path in (PROJECT / "tests").rglob("test_*.py")}
    places = {str(path.relative_to(PROJECT / "tests")) for path in folders} - {"."}
    across = {place for place in places if place.split("/")[0] in ACROSS_ROOMS}
    assert [place for place in sorted(places - across) if not (PACKAGE / place).is_dir()] == []


# ---- pages

TO_BE_WRITTEN = {  # by whoever follows a guide
    "src/tidings/linking/ring.py",
    "src/tidings/routing/second_chance.py",
}


def pages() -> list[Path]:
    return [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(PROJECT)))
def test_modules_and_pages_that_a_page_names_are_there(page: Path) -> None:
    text = page.read_text()
    named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)[`:]", text)) - TO_BE_WRITTEN
    roots = (PROJECT, PACKAGE)
    assert [name for name in named if not any((root / name).exists() for root in roots)] == []
    links = re.findall(r"\]\((?!https?:)([^)#]+)", text)
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_decision_says_what_was_refused_and_what_it_costs() -> None:
    found = sorted(DECISIONS.glob("*.md"))
    assert len(found) > 5
    for page in found:
        text = page.read_text()
        for heading in ("## Decided", "## Instead of", "## Because", "## It costs"):
            assert heading in text, f"{page.name} has no {heading}"
        assert lines_of(page) <= 40, f"{page.name} is more than a short page"


def test_the_architecture_names_every_room_and_every_decision() -> None:
    text = (PROJECT / "docs" / "architecture.md").read_text()
    assert [room for room in rooms() if not re.search(rf"\b{room}\b", text)] == []
    linked = re.findall(r"\]\(decisions/([a-z-]+\.md)\)", text)
    assert sorted(linked) == [page.name for page in sorted(DECISIONS.glob("*.md"))]
