"""Arithmetic without eval: numbers, + - * / ^ %, parentheses and roots, in decimals."""

import re
from decimal import Decimal, DecimalException, localcontext

_TOKEN = re.compile(r"\s*(?:(\d+(?:\.\d+)?)|(.))", re.DOTALL)
_MOST_CHARACTERS = 200
_MOST_DEPTH = 30
_MOST_POWER = 1000
_DIGITS = 28
_SHOWN_DIGITS = 12


class NoSum(ValueError):
    """It is no sum, or one that has no result."""


def calculate(text: str) -> Decimal:
    """The result of an expression; NoSum says what is wrong with it."""
    if len(text) > _MOST_CHARACTERS:
        raise NoSum("the expression is too long")
    reader = _Reader([match[1] or match[2] for match in _TOKEN.finditer(text.strip())])
    try:
        with localcontext() as context:
            context.prec = _DIGITS
            result = reader.sum(0)
            reader.end()
            return +result
    except DecimalException:
        raise NoSum("it has no result, such as a division by zero, or one too large") from None


def shown(number: Decimal) -> str:
    """A result as people write it."""
    rounded = round(number, _SHOWN_DIGITS)
    if rounded == rounded.to_integral_value():
        return f"{rounded.to_integral_value():f}"
    return f"{rounded:f}".rstrip("0")


class _Reader:
    """Reads tokens from left to right; each method one level of precedence."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._place = 0

    def end(self) -> None:
        if self._place < len(self._tokens):
            raise NoSum(f"“{self._tokens[self._place]}” is not understood there")

    def sum(self, depth: int) -> Decimal:
        value = self._product(depth)
        while (sign := self._take("+", "-")) is not None:
            other = self._product(depth)
            value = value + other if sign == "+" else value - other
        return value

    def _product(self, depth: int) -> Decimal:
        value = self._signed(depth)
        while (sign := self._take("*", "/")) is not None:
            other = self._signed(depth)
            value = value * other if sign == "*" else value / other
        return value

    def _signed(self, depth: int) -> Decimal:
        if depth > _MOST_DEPTH:
            raise NoSum("it has too many parentheses")
        if self._take("-"):
            return -self._signed(depth + 1)
        return self._power(depth)

    def _power(self, depth: int) -> Decimal:
        value = self._marked(depth)
        if self._take("^"):
            power = self._signed(depth + 1)
            if abs(power) > _MOST_POWER:
                raise NoSum("the power is too large")
            return value**power
        return value

    def _marked(self, depth: int) -> Decimal:
        value = self._number(depth)
        while mark := self._take("%", "²"):
            value = value / 100 if mark == "%" else value * value
        return value

    def _number(self, depth: int) -> Decimal:
        if self._take("("):
            value = self.sum(depth + 1)
            if not self._take(")"):
                raise NoSum("a parenthesis is not closed")
            return value
        if self._take("√"):
            return self._number(depth + 1).sqrt()
        token = self._tokens[self._place] if self._place < len(self._tokens) else ""
        if not token[:1].isdecimal():
            raise NoSum(f"a number is missing before “{token}”" if token else "it ends where a number should be")
        self._place += 1
        return Decimal(token)

    def _take(self, *wanted: str) -> str | None:
        if self._place < len(self._tokens) and self._tokens[self._place] in wanted:
            self._place += 1
            return self._tokens[self._place - 1]
        return None
