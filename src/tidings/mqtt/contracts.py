"""How is a contract stated in the user properties of MQTT 5, and read from them again?

Nine names have a meaning here. All other user properties are attributes of the message and are not
touched. `STATEMENTS` has one row for each name: the field of the contract it stands for, how its
text is read and written, and what is accepted. Brokers read by it; whoever publishes writes by it.

A bad value is refused by name and never ignored: a publisher who relies on a deadline that nobody
keeps is worse off than one whose message is refused. The reason code is 0x83: the packet is valid,
and this broker cannot do what it says. `misspelt` finds names that were probably meant to be ours.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from math import inf
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from tidings.core.contract import BEST_EFFORT, Contract
from tidings.core.errors import WireError
from tidings.core.near_names import slip_of
from tidings.mqtt.properties import UserProperties
from tidings.mqtt.reasons import ReasonCode

LONGEST_SHOWN = 80  # characters of a bad value that the error repeats
LONGEST_SLIP = 40  # characters of a name that can be a slip of ours; more are not looked at
REMEMBERED_NAMES = 1_024  # of other people's properties: a client sends the same ones for ever

_NUMBER = re.compile(r"\d+(\.\d*)?([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?", re.ASCII)
_MS_PER_S_DIGITS = 3


def _number(text: str) -> float:
    """A plain decimal number: no sign, no "nan", no "inf", no underscores."""
    if not _NUMBER.fullmatch(text) or float(text) == inf:
        raise ValueError
    return float(text)


def _seconds(text: str) -> float:
    """Milliseconds as seconds. Shifting the decimal point loses nothing, as a division would."""
    if _number(text) == 0:
        raise ValueError
    return float(Decimal(text).scaleb(-_MS_PER_S_DIGITS))


def _milliseconds(seconds: float) -> str:
    return f"{Decimal(repr(seconds)).scaleb(_MS_PER_S_DIGITS):f}"


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


def property_text(value: object) -> str:
    """A value as user properties spell it: truth as true or false, numbers as Python does."""
    return str(value).lower() if isinstance(value, bool) else str(value)


class BadStatement(WireError):
    """Something is asked for that we cannot do; `name` is the user property's own that asks for it,
    or the one that it is a misspelling of."""

    def __init__(
        self, name: str, problem: str, code: int = ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR
    ) -> None:
        self.name = name
        super().__init__(problem, code)


class Statement(Struct, frozen=True):
    """What one user property says about a contract."""

    field: str  # of the contract; `where` belongs to the subscription
    read: Callable[[str], Any]  # raises ValueError if the text is not accepted
    accepted: str
    write: Callable[[Any], str] = property_text


STATEMENTS: dict[str, Statement] = {
    # by the name of the user property
    "deadline-ms": Statement(
        "deadline_s", _seconds, "a number of milliseconds greater than 0", _milliseconds
    ),
    "price": Statement("price", _number, "a number from 0"),
    "reliability": Statement("reliability", _ratio, "a number from 0 to 1"),
    "availability": Statement("availability", _ratio, "a number from 0 to 1"),
    "late": Statement("late", _word(deliver="deliver", drop="drop"), "deliver or drop"),
    "durable": Statement("durable", _word(true=True, false=False), "true or false"),
    "strategy": Statement("strategy", _name, "the name of a routing strategy"),
    "scheduling": Statement("scheduling", _name, "the name of a scheduling policy"),
    "where": Statement(
        "where", _name, "a predicate on a message's attributes, such as height < 3000"
    ),
}
_USUAL = asdict(BEST_EFFORT) | {"where": ""}


def user_properties_of(contract: Contract, where: str = "") -> UserProperties:
    """The user properties that state a contract: those in which it differs from best effort."""
    wanted = asdict(contract) | {"where": where}
    return tuple(
        (name, statement.write(wanted[statement.field]))
        for name, statement in STATEMENTS.items()
        if wanted[statement.field] != _USUAL[statement.field]
    )


def stated_contract(
    user_properties: UserProperties, expiry_s: int | None, default: Contract
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


def _statements(user_properties: UserProperties) -> dict[str, Any]:
    stated: dict[str, Any] = {}
    for name, text in user_properties:
        statement = STATEMENTS.get(name)
        if statement is None:
            continue
        if statement.field in stated:
            problem = f"user property {name} is stated twice, but accepted is: once."
            raise BadStatement(name, problem)
        try:
            stated[statement.field] = statement.read(text)
        except ValueError:
            raise bad_value(name, text, statement.accepted) from None
    return stated


def bad_value(name: str, text: str, accepted: str, hint: str = "") -> BadStatement:
    """The refusal of a statement whose value is not accepted."""
    problem = f"user property {name} is {shown(text)}, but accepted is: {accepted}.{hint}"
    return BadStatement(name, problem)


def shown(text: str) -> str:
    """A text from the wire as errors and logs repeat it: quoted, on one line, not too long."""
    return repr(text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "...")


def misspelt(user_properties: UserProperties) -> dict[str, str]:
    """Names that state nothing, each with the name of a statement that was probably meant."""
    found = {}
    for name, _ in user_properties:
        if name not in STATEMENTS and len(name) <= LONGEST_SLIP and (meant := _meant(name)):
            found[name] = meant
    return found


@lru_cache(REMEMBERED_NAMES)
def _meant(name: str) -> str | None:
    return slip_of(name, STATEMENTS)
