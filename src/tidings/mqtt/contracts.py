"""What does a client promise or ask for, in the user properties of MQTT 5?

Nine names have a meaning here; all other user properties are a message's attributes and none of
our business. Each name has one row in a table: how its text becomes a value, and what is accepted.
A bad value is refused by name (0x83), never silently ignored: a publisher who believes in a
deadline that nobody keeps is worse off than one who is told.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import inf
from typing import Any

from msgspec.structs import replace

from tidings.core.contract import Contract
from tidings.core.errors import WireError
from tidings.mqtt.properties import Pairs
from tidings.mqtt.reasons import ReasonCode

LONGEST_SHOWN = 80  # characters of a bad value that the error repeats

_NUMBER = re.compile(r"\d+(\.\d*)?([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?", re.ASCII)


def _number(text: str) -> float:
    """A plain decimal number: no sign, no "nan", no "inf", no underscores."""
    if not _NUMBER.fullmatch(text) or float(text) == inf:
        raise ValueError
    return float(text)


def _seconds(text: str) -> float:
    milliseconds = _number(text)
    if milliseconds == 0:
        raise ValueError
    return milliseconds / 1000


def _ratio(text: str) -> float:
    ratio = _number(text)
    if ratio > 1:
        raise ValueError
    return ratio


def _word(**meanings: object) -> Callable[[str], object]:
    def read(text: str) -> object:
        if text not in meanings:
            raise ValueError
        return meanings[text]

    return read


def _name(text: str) -> str:
    if not text:
        raise ValueError
    return text


STATEMENTS: dict[str, tuple[str, Callable[[str], Any], str]] = {
    # user property: (field of the contract, reader, what is accepted)
    "deadline-ms": ("deadline_s", _seconds, "a number of milliseconds greater than 0"),
    "price": ("price", _number, "a number from 0"),
    "reliability": ("reliability", _ratio, "a number from 0 to 1"),
    "availability": ("availability", _ratio, "a number from 0 to 1"),
    "late": ("late", _word(deliver="deliver", drop="drop"), "deliver or drop"),
    "durable": ("durable", _word(true=True, false=False), "true or false"),
    "strategy": ("strategy", _name, "the name of a routing strategy"),
    "scheduling": ("scheduling", _name, "the name of a scheduling policy"),
    "where": ("where", _name, "a predicate on a message's attributes, such as height < 3000"),
}


def stated_contract(
    user_properties: Pairs, expiry_s: int | None, default: Contract
) -> tuple[Contract, str | None]:
    """The default contract as changed by what the client states, and its `where`, if any.

    MQTT's message expiry is the deadline of a message that states none, and such a message is
    dropped when late, because MQTT promises that an expired message is not delivered.
    """
    if not user_properties and expiry_s is None:
        return default, None
    stated = _statements(user_properties)
    where = stated.pop("where", None)
    if expiry_s is not None and "deadline_s" not in stated:
        stated |= {"deadline_s": float(expiry_s), "late": "drop"}
    return (replace(default, **stated) if stated else default), where


def _statements(user_properties: Pairs) -> dict[str, Any]:
    stated: dict[str, Any] = {}
    for name, text in user_properties:
        if name not in STATEMENTS:
            continue
        field, read, accepted = STATEMENTS[name]
        if field in stated:
            raise _refused(f"user property {name} is stated twice, but accepted is: once")
        try:
            stated[field] = read(text)
        except ValueError:
            shown = text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "..."
            problem = f"user property {name} is {shown!r}, but accepted is: {accepted}"
            raise _refused(problem) from None
    return stated


def _refused(problem: str) -> WireError:
    return WireError(problem + ".", ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR)
