"""Is what is compiled the same code, and does it run only while it is?

The compiled modules themselves are tested by running the tests with them: `make native` and then
`make test-native`.
"""

import ast
import importlib.util
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from tidings import native_code
from tidings.native_code import (
    CompiledModules,
    compiled_files,
    compiled_modules,
    fingerprint,
    use_compiled_code,
)

NATIVE = Path(__file__).parent.parent / "native"


def loaded(name: str) -> ModuleType:
    """A module of the build, which is no part of the package."""
    spec = importlib.util.spec_from_file_location(name, NATIVE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(name, module)
    spec.loader.exec_module(module)
    return module


SOURCES, VALUES = loaded("native_sources"), loaded("native_values")
BUILD = loaded("build")
FUTURE = "from __future__ import annotations"


# ---- values

GIVEN = '''
from tidings.core.values import ChangingValue, Value


class Place(Value, frozen=True):
    """Where."""

    x: int
    y: int = 2  # up
    names: tuple[
        str, ...
    ] = ()

    def far(self) -> int:
        return self.x + self.y


class Box(ChangingValue):
    inside: Place


AFTER = 1
'''


def native(text: str) -> dict[str, Any]:
    """What the native text of a module defines, run by Python."""
    made: dict[str, Any] = {}
    exec(SOURCES.native_source(text, "given").replace("tidings.core.values", "native_values"), made)
    return made


def test_a_value_has_a_constructor_with_its_defaults_and_its_verbs() -> None:
    place = native(GIVEN)["Place"]
    assert (place(1).x, place(1).y, place(1).names, place(1, y=5).far()) == (1, 2, (), 6)
    with pytest.raises(TypeError):
        place()


def test_values_of_equal_fields_are_equal_and_say_what_they_are() -> None:
    made = native(GIVEN)
    place, box = made["Place"], made["Box"]
    assert place(1) == place(1, 2, ()) != place(2)
    assert hash(place(1)) == hash(place(1, 2))
    assert place(1) != box(place(1))
    assert repr(place(1)) == "Place(x=1, y=2, names=())"
    assert VALUES.changed(place(1), y=7) == place(1, 7)


def test_no_line_moves() -> None:
    text = SOURCES.native_source(GIVEN, "given")
    numbers = [
        {
            node.name: node.lineno
            for node in ast.walk(ast.parse(each))
            if isinstance(node, ast.ClassDef | ast.FunctionDef)
        }
        for each in (GIVEN, text)
    ]
    before, after = numbers
    assert before.items() <= after.items()
    assert len(text.splitlines()) == len(GIVEN.splitlines())


def test_what_can_be_compiled_is_python_of_as_many_lines() -> None:
    compilable = BUILD.compilable()
    assert {"tidings/broker/broker.py", "tidings/sim/world.py"} <= dict(compilable).keys()
    for path, text in compilable:
        compile(text, path, "exec")
        if path not in BUILD.TWINS:
            source = (native_code.SOURCES / path).read_text()
            assert len(text.splitlines()) == len(source.splitlines()), path


def test_a_class_that_others_inherit_needs_nothing_of_the_compiler_when_it_runs() -> None:
    given = f"{FUTURE}\n\nimport math\n\n\nclass NeverReroutes:\n    pass\n"
    text = SOURCES.native_source(given, "given")
    assert "@mypyc_attr(allow_interpreted_subclasses=True)\nclass NeverReroutes:" in text
    assert len(text.splitlines()) == len(given.splitlines())
    needed = {
        name.name if isinstance(node, ast.Import) else node.module
        for node in ast.parse(text).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }
    assert needed == {"__future__", "typing", "math"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("class Frame(Struct):\n    x: int\n\n\n", "a Struct"),
        ("@runtime_checkable\nclass Talks(Protocol):\n    pass\n\n\n", "runtime_checkable"),
        ("class Place(Value):\n    x: int\nAFTER = 1\n", "no two empty lines"),
        (f"{FUTURE}\nimport math\n\n\nclass NeverReroutes:\n    pass\n", "no empty line"),
    ],
)
def test_what_cannot_be_compiled_says_why(text: str, why: str) -> None:
    with pytest.raises(SOURCES.UnfitError, match=why):
        SOURCES.native_source(text, "given")


# ---- which code runs


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of one module, which was compiled; the index."""
    monkeypatch.delenv(native_code.SWITCH, raising=False)
    monkeypatch.setattr(native_code, "SOURCES", tmp_path)
    monkeypatch.setattr(native_code, "BUILT", tmp_path / "build")
    (tmp_path / "hot.py").write_text("HOT = 1\n")
    of = fingerprint(tmp_path, ["hot.py"])
    (tmp_path / "build" / of).mkdir(parents=True)
    (tmp_path / "build" / of / f"hot{EXTENSION_SUFFIXES[0]}").touch()
    index = {
        "fingerprint": of,
        "suffix": EXTENSION_SUFFIXES[0],
        "sources": ["hot.py"],
        "modules": ["hot"],
    }
    path = tmp_path / "build" / native_code.INDEX
    path.write_bytes(msgspec.json.encode(index))
    return path


def test_what_was_compiled_is_found_while_its_source_is_the_same(built: Path) -> None:
    found = compiled_modules()
    assert isinstance(found, CompiledModules)
    spec = found.find_spec("hot", None)
    assert spec is not None
    assert spec.origin is not None
    assert spec.origin.endswith(f"hot{EXTENSION_SUFFIXES[0]}")
    assert found.find_spec("cold", None) is None


def test_after_an_edit_the_source_runs(built: Path) -> None:
    (native_code.SOURCES / "hot.py").write_text("HOT = 2\n")
    assert compiled_modules() == "the source has changed since it was compiled: make native"


def test_if_something_compiled_is_missing_the_source_runs(built: Path) -> None:
    for file in native_code.BUILT.glob("*/hot.*"):
        file.unlink()
    assert compiled_modules() == "a part of what was compiled is missing: make native"


def test_another_python_runs_the_source(built: Path) -> None:
    index = msgspec.json.decode(built.read_bytes())
    built.write_bytes(msgspec.json.encode(index | {"suffix": ".cpython-27.so"}))
    assert compiled_modules() == "it was compiled for another Python or machine: make native"


@pytest.mark.parametrize("text", ["", "{}", "[]", "not json"])
def test_an_index_that_makes_no_sense_does_no_harm(built: Path, text: str) -> None:
    built.write_text(text)
    assert compiled_modules() == "to compile it, which is faster: make native"


def test_the_source_runs_if_the_environment_says_so(
    built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(native_code.SWITCH, "0")
    assert compiled_modules() == "TIDINGS_NATIVE=0"


def test_what_cannot_be_loaded_is_interpreted(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine whose C library is older; here the file is empty."""
    finders = [*sys.meta_path]
    monkeypatch.setattr(native_code, "LIBRARY", "hot")
    said = use_compiled_code()
    assert said.startswith("interpreted (what was compiled cannot be loaded here: ")
    assert sys.meta_path == finders


def test_a_copy_gets_what_was_compiled_of_its_source_and_nothing_else(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (built.parent / "draft").touch()  # of a build that goes on
    there = tmp_path / "installed"
    for name, file in compiled_files().items():
        (there / name).parent.mkdir(parents=True, exist_ok=True)
        (there / name).write_bytes(file.read_bytes())
    monkeypatch.setattr(native_code, "BUILT", there)
    assert isinstance(compiled_modules(), CompiledModules)
    assert not (there / "draft").exists()
    monkeypatch.setenv(native_code.SWITCH, "0")
    assert compiled_files() == {}
