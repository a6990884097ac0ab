"""How does a value become a native class? `class Send(Value)` gets a constructor of its own.

The source that people read and interpret is not changed; this makes the text that is compiled. No
line moves, so that a traceback of compiled code shows the right one: the constructor and the names
of the fields go into the two empty lines that follow every class.
"""

from __future__ import annotations

import ast

VALUES = {"Value", "ChangingValue"}
FUTURE = "from __future__ import annotations"
# By strategies of others, and by what gives messages to logs: these are interpreted.
INHERITED = {"NeverReroutes", "Deliveries"}
NOT_NATIVE = ("cached_property", "runtime_checkable")


class UnfitError(Exception):
    """A module that cannot be compiled, and why."""


def native_source(text: str, name: str) -> str:
    """The module as it is compiled."""
    lines = text.split("\n")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef) and "Struct" in map(_name, node.bases):
            raise UnfitError(f"{name}: {node.name} is a Struct, whose annotations compiling loses")
        if isinstance(node, ast.Name) and node.id in NOT_NATIVE:
            raise UnfitError(f"{name}: {node.id} does not work in native classes")
        if isinstance(node, ast.ClassDef) and VALUES & {*map(_name, node.bases)}:
            _make_native(node, lines, name)
        if isinstance(node, ast.ClassDef) and node.name in INHERITED:
            _open_to_heirs(node, lines, name)
    return "\n".join(lines)


def _make_native(node: ast.ClassDef, lines: list[str], name: str) -> None:
    fields = [each for each in node.body if isinstance(each, ast.AnnAssign)]
    named = [(_target(each), ast.unparse(each.annotation)) for each in fields]
    asked = [
        f"{field}: {kind}" + (f" = {ast.unparse(each.value)}" if each.value else "")
        for each, (field, kind) in zip(fields, named, strict=True)
    ]
    kept = "; ".join(f"self.{field} = {field}" for field, _ in named) or "pass"
    end = node.end_lineno
    assert end is not None
    if any(line.strip() for line in lines[end : end + 2]):
        raise UnfitError(f"{name}: no two empty lines follow the class {node.name}")
    for each in fields:
        if each.value is not None:  # the constructor knows the default
            _cut(lines, each.annotation, each.value)
    lines[node.lineno - 1] = f"class {node.name}({_name(node.bases[0])}):"
    lines[end] = f"    def __init__(self, {', '.join(asked)}) -> None: {kept}"
    names = ", ".join(repr(field) for field, _ in named)
    lines[end + 1] = f"    def fields(self) -> tuple[str, ...]: return ({names},)"


def _open_to_heirs(node: ast.ClassDef, lines: list[str], name: str) -> None:
    """Let interpreted classes inherit from it, in the empty line before it. Who compiles knows the
    decorator; where compiled code runs, its module need not be installed."""
    first = lines.index(FUTURE)
    if lines[first + 1]:
        raise UnfitError(f"{name}: no empty line follows the import of annotations")
    lines[first] += "; from typing import TYPE_CHECKING"
    lines[first + 1] = "if TYPE_CHECKING: from mypy_extensions import mypyc_attr"
    lines[node.lineno - 2] = "@mypyc_attr(allow_interpreted_subclasses=True)"


def _cut(lines: list[str], annotation: ast.expr, value: ast.expr) -> None:
    """Leave out the default of a field, on the line or lines where it stands."""
    first, last = annotation.end_lineno, value.end_lineno
    assert first is not None
    assert last is not None
    assert annotation.end_col_offset is not None
    assert value.end_col_offset is not None
    rest = lines[last - 1].encode()[value.end_col_offset :].decode()
    head = lines[first - 1].encode()[: annotation.end_col_offset].decode()
    lines[first - 1] = head + (rest if first == last else "")
    for number in range(first, last):
        lines[number] = ""


def _target(field: ast.AnnAssign) -> str:
    assert isinstance(field.target, ast.Name)
    return field.target.id


def _name(base: ast.expr) -> str:
    return base.id if isinstance(base, ast.Name) else ""
