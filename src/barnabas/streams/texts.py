"""Texts that describe a pipeline, checked when it is described: words, durations, topics.

Spark checks them too, but after it has started, and in its own words.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection
from typing import Final

from barnabas.streams.errors import PipelineError

_UNITS: Final = (
    *("microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "year"),
)
_PAIR: Final = re.compile(r"\s*([+-]?)\s*(\d+(?:\.\d*)?|\.\d+)\s+([A-Za-z]+)(?=\s|$)")
_TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]+")
_TOPIC_LENGTH_MAX: Final = 249
_LONG: Final = ("month", "year")


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
