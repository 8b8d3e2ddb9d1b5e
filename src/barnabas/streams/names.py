"""Names of columns, and other texts that describe a pipeline, checked when it is described.

Of an expression's names only what is certain counts: a name in SQL that is a function, a word of
the language or part of a form that is not read here passes, and so does everything after a step of
the user's own. Words, durations and topics Spark checks too, but after it has started, and in its
own words.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final, TypeAlias

from barnabas.streams.errors import PipelineError

KEY: Final = "_key"
TIMESTAMP: Final = "_timestamp"
DELETED: Final = "_is_deleted"
"""Only in tables: whether the record deletes its key's row."""
WRITTEN: Final = "_written"
RECORD_COLUMNS: Final = (
    KEY,
    TIMESTAMP,
    WRITTEN,
    "_topic",
    "_partition",
    "_offset",
    "_headers",
    DELETED,
)
"""A record's key and event time, its own timestamp, and where it lies. They are not written."""
Makes: TypeAlias = Callable[[list[str]], Sequence[str] | None]
"""Which columns come of a step, by those before it; None where only Spark knows."""
_TOKEN: Final = re.compile(
    r"\s*(?:(?P<text>[rR]?'(?:[^'\\]|\\.)*'|[rR]?\"(?:[^\"\\]|\\.)*\")|(?P<quoted>`(?:[^`]|``)*`)"
    r"|(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?:BD|[LSYFDlsyfd])?\b)"
    r"|(?P<name>[^\W\d]\w*)|(?P<other>->|--|/\*|::|\S))"
)
_UNREAD: Final = frozenset({"->", "--", "/*", "::", ":", "{", "}", "?", "$", "@"})
"""Lambdas, comments, paths into JSON, parameters: names may stand for something else there."""
_WORD_LIST: Final = """
all and anti any array as asc at between bigint binary boolean both by byte case cast century char
character collate cross cube current current_catalog current_database current_date current_schema
current_time current_timestamp current_user date day dayofweek dayofyear days dec decade decimal
desc distinct div double dow doy else end epoch escape exists extract false filter first float
following for from full group having hour hours ignore ilike in inner int integer interval is
isodow isoyear last lateral leading left like limit localtimestamp long map microsecond
microseconds millennium millisecond milliseconds minute minutes mon month months natural not null
nulls numeric on or order outer over overlay partition placing position preceding quarter range
real regexp respect right rlike row rows second seconds select session_user short similar smallint
some sort string struct substring symmetric table then time timestamp timestamp_ltz timestamp_ntz
timezone tinyint to trailing trim true try_cast unbounded union unknown user using values varchar
variant void week weeks when where window with within without year years zone
"""
_WORDS: Final = frozenset(_WORD_LIST.split())
_COLUMN_FUNCTIONS: Final = """
approx_count_distinct avg bool_and bool_or col collect_list collect_set column count countDistinct
count_distinct every first kurtosis last max max_by mean median min min_by mode skewness stddev
stddev_pop stddev_samp sum sum_distinct var_pop var_samp variance
"""
_OF_COLUMNS: Final = frozenset(_COLUMN_FUNCTIONS.split())
"""PySpark's functions whose texts are names of columns, as far as this checks them."""
_UNITS: Final = (
    *("microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "year"),
)
_PAIR: Final = re.compile(r"\s*([+-]?)\s*(\d+(?:\.\d*)?|\.\d+)\s+([A-Za-z]+)(?=\s|$)")
_TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]+")
_TOPIC_LENGTH_MAX: Final = 249
_LONG: Final = ("month", "year")


def value_columns(columns: list[str]) -> list[str]:
    """Return the columns that are no record columns."""
    return [name for name in columns if name not in RECORD_COLUMNS]


def record_columns(columns: list[str]) -> list[str]:
    """Return the record columns that are there."""
    return [name for name in columns if name in RECORD_COLUMNS]


def named_in(sql: str) -> list[str]:
    """Return the columns that a SQL expression names, as far as that is certain."""
    tokens: list[tuple[str, str]] = []
    for match in _TOKEN.finditer(sql):
        kind = match.lastgroup or "other"
        tokens.append((kind, match[kind]))
    if any(text in _UNREAD for kind, text in tokens if kind == "other"):
        return []
    if any(kind == "name" and text.lower() == "select" for kind, text in tokens):
        return []
    names = []
    for at, (kind, text) in enumerate(tokens):
        if kind not in ("name", "quoted"):
            continue
        before = tokens[at - 1][1].lower() if at else ""
        after = tokens[at + 1] if at + 1 < len(tokens) else ("", "")
        if before in (".", "as", "collate") or after[1] == "(" or after[0] == "text":
            continue
        if [one for _, one in tokens[at + 1 : at + 3]] == ["=", ">"]:
            continue  # the name of an argument
        if kind == "quoted":
            names.append(text[1:-1].replace("``", "`"))
        elif text.lower() not in _WORDS:
            names.append(text)
    return names


def single_name(value: Any) -> str | None:
    """Return the name that a column gets of an expression; None where only Spark can say."""
    if isinstance(value, str) and re.fullmatch(r"\s*[^\W\d]\w*\s*", value):
        return value.strip()
    if isinstance(value, str) and re.fullmatch(r"`[^`]+`", value):
        return value[1:-1]
    return None


def named_by_call(function: str, arguments: Sequence[Any]) -> list[str]:
    """Return the columns that a call of one of PySpark's functions names in its texts."""
    texts = [one for one in arguments if isinstance(one, str)]
    if function == "expr":
        return [name for text in texts for name in named_in(text)]
    if function not in _OF_COLUMNS:
        return []
    return [name for text in texts if "*" not in text for name in _first_part(text)]


def _first_part(column: str) -> list[str]:
    quoted = re.match(r"\s*`([^`]+)`", column)
    return [quoted[1] if quoted else column.partition(".")[0].strip()]


def aliases_in(sql: str) -> list[str]:
    """Return the names that a SQL expression gives by AS: later ones of a select may use them."""
    return re.findall(r"\bas\s+`?(\w+)`?", sql, re.IGNORECASE)


def without(columns: Iterable[str], names: Collection[str]) -> list[str]:
    """Return the columns that are none of the names."""
    return [column for column in columns if column not in names]


def check_columns(where: str, names: Iterable[str], columns: Sequence[str] | None) -> None:
    """Raise PipelineError for a name that none of the columns has; none is checked without them."""
    if columns is None:
        return
    known = {column.lower() for column in columns}
    for name in names:
        if name.lower() not in known:
            shown = [column for column in columns if not column.startswith("_")]
            has = f"its columns are {', '.join(shown)}" if shown else "it has none"
            raise PipelineError(f"{where}: there is no column {name}{nearest(name, shown)} ({has})")


def nearest(word: str, known: Collection[str]) -> str:
    """Return a question that names the known word nearest to `word`; nothing if none is near."""
    by_lower = {one.lower(): one for one in known}
    close = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.5)
    return f"; did you mean {by_lower[close[0]]}?" if close else ""


def check_word(what: str, word: object, known: Collection[str]) -> None:
    """Raise PipelineError for a word that is not one of the known."""
    if word not in known:
        choices = " or ".join(known)
        raise PipelineError(f"{what} is {choices}, not {word!r}{nearest(str(word), known)}")


def check_topic(topic: object) -> None:
    """Raise PipelineError for a name that no topic can have."""
    if not isinstance(topic, str) or not _TOPIC.fullmatch(topic) or topic in (".", ".."):
        raise PipelineError(
            f"a topic's name has ASCII letters, digits, '.', '_' and '-', which {topic!r} does not"
        )
    if len(topic) > _TOPIC_LENGTH_MAX:
        raise PipelineError(f"a topic's name has at most {_TOPIC_LENGTH_MAX} characters: {topic}")


def check_duration(
    what: str, text: object, *, may_be_zero: bool = True, may_be_long: bool = False
) -> None:
    """Raise PipelineError for a text that Spark takes for no duration.

    `may_be_long`: months and years count too. A text that begins with INTERVAL is left to Spark's
    parser.
    """
    if not isinstance(text, str):
        raise PipelineError(f"{what} is a text such as '1 minute', not {text!r}")
    if text.strip().lower().startswith("interval") or "'" in text:
        return
    total, end = 0.0, 0
    for match in _PAIR.finditer(text):
        if match.start() != end:
            break
        end = match.end()
        unit = match[3].lower().removesuffix("s")
        if unit not in _UNITS:
            raise PipelineError(
                f"{what} is {text!r}, and {match[3]} is not a unit of time{nearest(unit, _UNITS)}"
            )
        if unit in _LONG and not may_be_long:
            raise PipelineError(f"{what} is {text!r}: months and years vary, so give it in days")
        total += float(match[2]) * (-1 if match[1] == "-" else 1)
    if end == 0 or text[end:].strip():
        raise PipelineError(f"{what} is a number and a unit, such as '1 minute', not {text!r}")
    if total < 0 or (total == 0 and not may_be_zero):
        raise PipelineError(f"{what} is {text!r}, and must be longer")
