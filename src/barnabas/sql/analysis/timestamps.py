"""Texts as points in time where a filter compares them with ROWTIME, WINDOWSTART or WINDOWEND."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

from barnabas.sql.errors import AnalysisError
from barnabas.sql.schema import ROWTIME, WINDOW_BOUNDS
from barnabas.sql.syntax.expressions import (
    Between,
    ColumnReference,
    Comparison,
    Expression,
    LongLiteral,
    StringLiteral,
)
from barnabas.sql.syntax.rewriting import rewrite

_ZERO_TIME = "00:00:00.000"
_WHOLE = re.compile(r"(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})\.(\d{3})\Z")
_ZONE = re.compile(r"([+-])(\d{2}):?(\d{2})?\Z")


def with_timestamps(condition: Expression) -> Expression:
    """The condition with such texts as milliseconds since the epoch."""

    def replaced(part: Expression) -> Expression | None:
        if isinstance(part, Between) and _is_time(part.operand):
            return replace(part, lower=_as_time(part.lower), upper=_as_time(part.upper))
        if isinstance(part, Comparison) and _is_time(part.left):
            return replace(part, right=_as_time(part.right))
        if isinstance(part, Comparison) and _is_time(part.right):
            return replace(part, left=_as_time(part.left))
        return None

    return rewrite(condition, replaced)


def _is_time(expression: Expression) -> bool:
    return isinstance(expression, ColumnReference) and (
        expression.name == ROWTIME or expression.name in WINDOW_BOUNDS
    )


def _as_time(expression: Expression) -> Expression:
    if not isinstance(expression, StringLiteral):
        return expression
    return LongLiteral(timestamp_of(expression.value), place=expression.place)


def timestamp_of(text: str) -> int:
    """The milliseconds of `2020-05-26T23:59:58.000+0200`, or of its beginning, down to the year.

    Without a zone it is UTC. Raises AnalysisError.
    """
    date, has_time, rest = text.partition("T")
    at = min((place for place in (rest.find("+"), rest.find("-")) if place >= 0), default=len(rest))
    time, zone = rest[:at].removesuffix("Z"), rest[at:]
    if not has_time:
        date += "-01" * max(0, 2 - date.count("-"))
    whole = _WHOLE.match(f"{date}T{time + _ZERO_TIME[len(time) :]}")
    try:
        if whole is None:
            raise ValueError(f"Text '{text}' could not be parsed")
        year, month, day, hour, minute, second, milliseconds = map(int, whole.groups())
        micros = milliseconds * 1000
        moment = datetime(year, month, day, hour, minute, second, micros, tzinfo=_zone(zone))
    except ValueError as error:
        raise AnalysisError(
            f"Failed to parse timestamp '{text}': {error}\n"
            "Required format is: \"yyyy-MM-dd'T'HH:mm:ss.SSS\", with an optional numeric 4-digit "
            "timezone, for example: '2020-05-26T23:59:58.000' or with tz: "
            "'2020-05-26T23:59:58.000+0200'. A part from the left is enough, as \"2020-05-26\"."
        ) from None
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def _zone(text: str) -> timezone:
    if not text:
        return UTC
    match = _ZONE.match(text)
    if match is None:
        raise ValueError(f"Failed to parse timezone '{text}'")
    minutes = int(match.group(2)) * 60 + int(match.group(3) or 0)
    return timezone(timedelta(minutes=-minutes if match.group(1) == "-" else minutes))
