"""What does an object still know of? A search through everything that it holds."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from functools import partial
from types import (
    BuiltinFunctionType,
    FunctionType,
    GetSetDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

from msgspec import Struct

PLAIN = (str, bytes, int, float, bool, type(None), type, ModuleType)


def held_by(thing: Any) -> list[Any]:
    """All objects that can be reached from one, itself included, each once."""
    found, border = {id(thing): thing}, [thing]
    while border:
        for part in _parts(border.pop()):
            if id(part) not in found:
                found[id(part)] = part
                border.append(part)
    return list(found.values())


def mentions(thing: Any, name: str) -> int:
    """How many texts that can be reached are this name. Equal texts may be one object."""
    return sum(1 for part in held_by(thing) if isinstance(part, str) and part == name)


def _parts(thing: Any) -> Iterator[Any]:
    if isinstance(thing, PLAIN):
        return
    if isinstance(thing, Mapping):
        yield from thing.keys()
        yield from thing.values()
    elif isinstance(thing, list | tuple | set | frozenset | deque):
        yield from thing
    elif isinstance(thing, Struct):
        yield from (getattr(thing, field) for field in thing.__struct_fields__)
    elif isinstance(thing, MethodType | BuiltinFunctionType):
        yield thing.__self__
    elif isinstance(thing, partial):
        yield from (thing.func, *thing.args)
    elif isinstance(thing, FunctionType):
        yield from (cell.cell_contents for cell in thing.__closure__ or ())
    yield from getattr(thing, "__dict__", {}).values()
    for kind in type(thing).__mro__:
        for slot in () if isinstance(thing, Struct) else _slots(kind):
            if hasattr(thing, slot):
                yield getattr(thing, slot)


def _slots(kind: type) -> Iterator[str]:
    """The attributes that instances have by their class; compiled classes do not list them."""
    yield from getattr(kind, "__slots__", ())
    if kind.__module__.startswith("tidings."):
        for name, what in vars(kind).items():
            if type(what) is GetSetDescriptorType and not name.startswith("__"):
                yield name
