"""Which predicate does a text mean?

Recursive descent over four rules, loosest first:

    either     = both { "or" both }
    both       = negation { "and" negation }
    negation   = "not" negation | "(" either ")" | comparison
    comparison = name operator literal | literal operator name
               | name ["not"] "in" "(" literal { "," literal } ")"
"""

from __future__ import annotations

from typing import Final, NoReturn, cast

from tidings.core.errors import PredicateError
from tidings.core.predicate.expressions import (
    Comparison,
    Membership,
    Not,
    Operator,
    Predicate,
    all_of,
    any_of,
)
from tidings.core.predicate.lexer import MAX_LENGTH, Token, literal_kind, tokens
from tidings.core.predicate.values import Constant, Kind

MAX_DEPTH = 32  # nested parentheses and nots; keeps every recursion far from Python's limit

_FLIPPED: Final[dict[Operator, Operator]] = {
    "==": "==",
    "!=": "!=",
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
}


def parse(text: str) -> Predicate:
    """The predicate that the text means; PredicateError points at the character of a fault."""
    parser = _Parser(text)
    predicate = parser.either(depth=0)
    parser.expect_end()
    if len(str(predicate)) > MAX_LENGTH:  # what we write to other brokers, they must accept
        problem = f"written out with spaces it exceeds {MAX_LENGTH} characters"
        raise PredicateError(text, len(text), problem)
    return predicate


class _Parser:
    """A place in the list of tokens."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens(text)
        self.next = 0

    def either(self, depth: int) -> Predicate:
        parts = [self.both(depth)]
        while self.accept("or"):
            parts.append(self.both(depth))
        return any_of(parts)

    def both(self, depth: int) -> Predicate:
        parts = [self.negation(depth)]
        while self.accept("and"):
            parts.append(self.negation(depth))
        return all_of(parts)

    def negation(self, depth: int) -> Predicate:
        if depth > MAX_DEPTH:
            self.fail(f"nested more than {MAX_DEPTH} deep")
        if self.accept("not"):
            return Not(self.negation(depth + 1))
        if self.accept("("):
            inner = self.either(depth + 1)
            self.expect(")")
            return inner
        return self.comparison()

    def comparison(self) -> Predicate:
        first = self.tokens[self.next]
        if first.kind == "name":
            self.next += 1
            return self.after_name(first.text)
        if literal_kind(first) is None:
            self.fail("expected an attribute name, a literal, 'not' or '('")
        kind, constant = self.literal()
        operator = self.operator()
        if self.tokens[self.next].kind != "name":
            self.fail("expected an attribute name to compare the literal with")
        self.check_order(operator, kind)
        flipped = _FLIPPED[cast(Operator, operator.text)]
        return Comparison(self.take().text, flipped, kind, constant)

    def after_name(self, attribute: str) -> Predicate:
        if self.accept("in"):
            return self.membership(attribute, negated=False)
        if self.accept("not"):
            self.expect("in")
            return self.membership(attribute, negated=True)
        operator = self.operator()
        kind, constant = self.literal()
        self.check_order(operator, kind)
        return Comparison(attribute, cast(Operator, operator.text), kind, constant)

    def membership(self, attribute: str, negated: bool) -> Predicate:
        self.expect("(")
        kind, constant = self.literal()
        constants = {constant: None}
        while self.accept(","):
            if literal_kind(self.tokens[self.next]) not in (None, kind):
                self.fail(f"a list holds literals of one type, and this one began with a {kind}")
            constants[self.literal()[1]] = None
        self.expect(")")
        return Membership(attribute, negated, kind, tuple(constants))

    def operator(self) -> Token:
        if self.tokens[self.next].kind != "operator":
            self.fail("expected one of == != < <= > >= (or 'in', 'not in' after a name)")
        return self.take()

    def literal(self) -> tuple[Kind, Constant]:
        kind = literal_kind(self.tokens[self.next])
        if kind is None:
            self.fail("expected a number, a quoted string, true or false")
        return kind, self.take().constant

    def take(self) -> Token:
        self.next += 1
        return self.tokens[self.next - 1]

    def accept(self, word: str) -> bool:
        """Steps over a keyword or mark if it is next."""
        token = self.tokens[self.next]
        found = token.text == word and token.kind in ("keyword", "mark")
        self.next += found
        return found

    def expect(self, word: str) -> None:
        if not self.accept(word):
            self.fail(f"expected {word!r}")

    def expect_end(self) -> None:
        token = self.tokens[self.next]
        if token.kind == "operator":
            self.fail("comparisons do not chain; join two of them with 'and'")
        if token.kind != "end":
            self.fail("expected 'and', 'or' or the end")

    def check_order(self, operator: Token, kind: Kind) -> None:
        if kind == "boolean" and operator.text not in ("==", "!="):
            problem = "true and false compare only by == and !="
            raise PredicateError(self.text, operator.position, problem)

    def fail(self, problem: str) -> NoReturn:
        raise PredicateError(self.text, self.tokens[self.next].position, problem)
