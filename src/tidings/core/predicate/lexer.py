"""Which words is the text of a predicate made of?

Each token remembers where it starts, so that a fault can point at its character.
"""

from __future__ import annotations

import math
import re
import sys
from typing import Final, Literal

from msgspec import Struct

from tidings.core.errors import PredicateError
from tidings.core.predicate.values import NUMBER_PATTERN, Constant, Kind

MAX_LENGTH = 4096  # characters; far beyond what a person writes, and it bounds every later step

TokenKind = Literal["number", "string", "boolean", "name", "keyword", "operator", "mark", "end"]

_TOKEN = re.compile(
    rf"""
    (?P<space>\s+)
  | (?P<number>{NUMBER_PATTERN})
  | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
  | (?P<name>[^\W\d]\w*(?:[.-]\w+)*)
  | (?P<operator>==|!=|<=|>=|<|>)
  | (?P<mark>[(),])
    """,
    re.VERBOSE | re.DOTALL,
)
_KINDS_OF_WORDS: Final[dict[str, TokenKind]] = {
    **dict.fromkeys(("and", "or", "not", "in"), "keyword"),
    **dict.fromkeys(("true", "false"), "boolean"),
}
_HINTS: Final[dict[str, str]] = {
    "=": "equality is written '=='",
    "!": "negation is written 'not', inequality '!='",
    "&": "conjunction is written 'and'",
    "|": "disjunction is written 'or'",
    '"': "this string does not end",
    "'": "this string does not end",
}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED: Final[dict[str, str]] = dict(zip("\"'\\/bfnrt", "\"'\\/\b\f\n\r\t", strict=True))


class Token(Struct, frozen=True):
    """One word of the text; `constant` is the meaning of a literal."""

    kind: TokenKind
    text: str
    position: int
    constant: Constant = ""


def tokens(text: str) -> list[Token]:
    """The words of the text, closed by an `end` token."""
    if len(text) > MAX_LENGTH:
        problem = f"it has {len(text)} characters, but at most {MAX_LENGTH} are allowed"
        raise PredicateError(text, MAX_LENGTH, problem)
    found: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            problem = _HINTS.get(text[position], f"{text[position]!r} has no meaning here")
            raise PredicateError(text, position, problem)
        if match.lastgroup != "space":
            found.append(_token(text, match))
        position = match.end()
    return [*found, Token("end", "", len(text))]


def _token(text: str, match: re.Match[str]) -> Token:
    word, position = match.group(), match.start()
    match match.lastgroup:
        case "number":
            return Token("number", word, position, _number(text, word, position))
        case "string":
            return Token("string", word, position, _unescaped(text, word, position))
        case "name":
            kind = _KINDS_OF_WORDS.get(word, "name")
            return Token(kind, sys.intern(word), position, word == "true")
        case "operator":
            return Token("operator", sys.intern(word), position)
        case _:
            return Token("mark", word, position)


def _number(text: str, word: str, position: int) -> float:
    number = float(word)
    if not math.isfinite(number):
        raise PredicateError(text, position, "this number is too large for a 64-bit float")
    return number + 0.0  # makes -0 a plain 0: they are equal, so they are written the same


def _unescaped(text: str, word: str, position: int) -> str:
    """The string that a quoted literal stands for, with the escapes of JSON and \\'."""

    def character(escape: re.Match[str]) -> str:
        code = escape.group(1)
        if len(code) == 5 and not 0xD800 <= int(code[1:], 16) <= 0xDFFF:
            return chr(int(code[1:], 16))
        if code in _ESCAPED:
            return _ESCAPED[code]
        problem = f"unknown escape; known are \\uXXXX (no surrogates) and \\ before {_KNOWN}"
        raise PredicateError(text, position + 1 + escape.start(), problem)

    return _ESCAPE.sub(character, word[1:-1])


_KNOWN = " ".join(_ESCAPED)


def literal_kind(token: Token) -> Kind | None:
    """The kind of literal that the token is, if it is one."""
    if token.kind == "number" or token.kind == "string" or token.kind == "boolean":
        return token.kind
    return None
