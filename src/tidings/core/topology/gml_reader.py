"""What does a GML text say? Keys with values: numbers, texts, and lists of further keys.

Himsolt's grammar (1996) is small: `key value` pairs, a value being a number, a quoted text or a
`[ ... ]` of pairs. networkx's reader refuses files of the Topology Zoo in which two links join the
same nodes without announcing a multigraph, so this is our own, without recursion.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

from tidings.core.errors import ConfigError

Value: TypeAlias = "int | float | str | Block"
Block: TypeAlias = list[tuple[str, Value]]

_TOKEN = re.compile(
    r"""\s+ | \#[^\n]*
    | (?P<key>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<text>"[^"]*")
    | (?P<bracket>[\[\]])""",
    re.VERBOSE,
)


def parse(text: str, source: str) -> Block:
    """The pairs of the text, in order; a fault is a `ConfigError` that names its line."""
    top: Block = []
    open_blocks = [top]
    key: str | None = None
    for kind, token, line in _tokens(text, source):
        if key is None:
            if kind == "key":
                key = token
            elif token == "]" and len(open_blocks) > 1:
                open_blocks.pop()
            else:
                raise ConfigError(source, f"line {line}", token, "a key, or `]` for an open `[`")
        elif token == "[":
            block: Block = []
            open_blocks[-1].append((key, block))
            open_blocks.append(block)
            key = None
        elif kind in ("number", "text"):
            open_blocks[-1].append((key, _value(kind, token)))
            key = None
        else:
            raise ConfigError(source, f"line {line}", token, f"a value for the key {key}")
    if key is not None or len(open_blocks) > 1:
        raise ConfigError(
            source, "the end", text[-20:], "a value for every key, a `]` for every `[`"
        )
    return top


def _tokens(text: str, source: str) -> Iterator[tuple[str, str, int]]:
    position, line = 0, 1
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            accepted = "keys, numbers, quoted texts, `[` and `]`"
            raise ConfigError(source, f"line {line}", text[position : position + 20], accepted)
        if found.lastgroup is not None:
            yield found.lastgroup, found.group(), line
        line += found.group().count("\n")
        position = found.end()


def _value(kind: str, token: str) -> int | float | str:
    if kind == "text":
        return token[1:-1]
    try:
        return int(token)
    except ValueError:
        return float(token)
