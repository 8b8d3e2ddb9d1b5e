"""Regular expressions of subscriptions: RE2, so that no pattern takes more than linear time.

Kafka uses RE2/J. The syntax is the same; where RE2/J names an error in other words, its words are
used, since clients show them. The library is imported at the first expression.
"""

from typing import Any, Final

from barnabas.node.coordinator.group.step import Refusal
from barnabas.protocol.errors import ErrorCode

PROGRAM_BYTES_MAX: Final = 1 << 20
"""Of a compiled expression. One that is larger takes a tenth of a second to compile or more, in
which the node would serve nobody; a thousand repetitions of a letter take a sixtieth of it."""
_WORDS: Final = {
    "pattern too large - compile failed": "expression too large",
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "unexpected )",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "no argument for repetition operator": "missing argument to repetition operator",
    "trailing \\": "trailing backslash at end of expression",
    "invalid named capture group": "invalid named capture",
}
"""RE2/J's messages for errors that RE2 calls otherwise."""


def compile_regex(regex: str, program_bytes_max: int = PROGRAM_BYTES_MAX) -> Any:
    """The compiled pattern, or a Refusal with INVALID_REGULAR_EXPRESSION."""
    import re2  # type: ignore[import-untyped]  # the package has no stubs

    options = re2.Options()
    options.log_errors = False
    options.max_mem = program_bytes_max
    try:
        return re2.compile(regex, options)
    except (re2.error, UnicodeError) as error:
        return Refusal(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: "
            f"{_description(error)}.",
        )


def matches(pattern: Any, name: str) -> bool:
    """Return whether the whole of `name` fits."""
    return pattern.fullmatch(name) is not None


def _description(error: Exception) -> str:
    said = error.args[0] if error.args else ""
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    reason = text.partition(": ")[0]
    return _WORDS.get(reason, reason)
