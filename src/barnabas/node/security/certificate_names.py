"""Names of clients that show a certificate: `ssl.principal.mapping.rules` (KIP-371).

Each rule is `DEFAULT`, which takes the distinguished name as it is, or
`RULE:pattern/replacement/[LU]`; the first whose pattern matches the whole name decides. Source:
Kafka's SslPrincipalMapper. Its expressions are Java's; those that Python lacks are refused.

The name is the client's choice, and an expression that backtracks can take for ever on a long one.
So RE2 matches, in linear time, wherever it means the same by an expression. The others
(look-around, references, repeats of what may be empty) are left to `re`, for names of at most
`BACKTRACKING_LENGTH_MAX` characters.
"""

import re
import warnings
from collections.abc import Callable
from typing import Any, Final

from barnabas.base.errors import ConfigError
from barnabas.java.regex_linear import repeats_nothing

RULES_KEY: Final = "ssl.principal.mapping.rules"
_RULE: Final = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_SPLITTER: Final = re.compile(rf"\s*({_RULE})\s*(,\s*|$)")
_PARSER: Final = re.compile(_RULE)
_NAMED_GROUP: Final = re.compile(r"\(\?<([a-zA-Z])")
BACKTRACKING_LENGTH_MAX: Final = 256
_PRIVATE: Final = 0xF0000
"""The first code point of a plane without letters.

Characters beyond ASCII go there while RE2 matches, whose `(?i)` knows all of Unicode. Order stays,
so ranges hold.
"""
_BACKSLASH_CODES: Final = re.compile(r"\\[x0-9]")
_REFERENCE: Final = re.compile(r"\\(.)|\$(\d+)|\$\{([a-zA-Z][a-zA-Z0-9]*)\}", re.DOTALL)

Rule = Callable[[str], str | None]


class NoRuleError(ValueError):
    """No rule applies to a name; such a client is not let in."""


class CertificateNames:
    """Turns distinguished names into names of principals."""

    def __init__(self, rules: str) -> None:
        """Raises ConfigError for a rule that makes no sense."""
        self._rules = [
            rule
            for rule in (_parse(match[1]) for match in _SPLITTER.finditer(rules.strip()))
            if rule is not None
        ]

    def name_of(self, distinguished_name: str) -> str:
        """Raises NoRuleError."""
        for rule in self._rules:
            name = rule(distinguished_name)
            if name is not None:
                return name
        raise NoRuleError(f"no rule of {RULES_KEY} applies to {distinguished_name}")


def _parse(text: str) -> Rule | None:
    match = _PARSER.match(text)
    if match is None or match.end() != len(text):
        raise ConfigError(RULES_KEY, f"{text!r} is not DEFAULT or RULE:pattern/replacement/[LU]")
    if match[1] is not None:
        return str
    if match[2] is None:
        return None  # an empty rule
    try:
        with warnings.catch_warnings():
            # Sets within sets, which Java joins or intersects and Python reads as letters.
            warnings.simplefilter("error", FutureWarning)
            # Java's \w, \d, \s and (?i) know ASCII alone.
            pattern = re.compile(_NAMED_GROUP.sub(r"(?P<\1", match[2]), re.ASCII)
    except (re.error, ValueError, FutureWarning) as error:
        raise ConfigError(RULES_KEY, f"{match[2]!r} is not an expression: {error}") from None
    return _rule(pattern, match[3], match[4])


def _rule(pattern: re.Pattern[str], replacement: str, case: str) -> Rule:
    linear = _linear(pattern)

    def apply(name: str) -> str | None:
        if linear is not None:
            hidden = _hide(name)
            if linear.fullmatch(hidden) is None:
                return None
            hidden_replacement = _hide(replacement)
            result = _show(linear.sub(lambda match: _expand(match, hidden_replacement), hidden))
        elif len(name) > BACKTRACKING_LENGTH_MAX or pattern.fullmatch(name) is None:
            return None
        else:
            result = pattern.sub(lambda match: _expand(match, replacement), name)
        if case == "L":
            return result.lower()
        return result.upper() if case == "U" else result

    return apply


def _linear(pattern: re.Pattern[str]) -> Any:
    """RE2's pattern, None where it lacks a construct or means something else by it."""
    import re2  # type: ignore[import-untyped]  # no stubs; few nodes need it

    if _BACKSLASH_CODES.search(pattern.pattern) or repeats_nothing(pattern.pattern):
        return None
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(_hide(pattern.pattern), options)
    except re2.error:
        return None


def _hide(text: str) -> str:
    return "".join(chr(_PRIVATE + ord(c)) if "\x7f" < c <= "\uffff" else c for c in text)


def _show(text: str) -> str:
    return "".join(chr(ord(c) - _PRIVATE) if _PRIVATE <= ord(c) <= 0xFFFFD else c for c in text)


def _expand(match: re.Match[str], replacement: str) -> str:
    """Java's replacement: `$1` is a group, and a backslash takes the next character as it is.

    A number without such a group loses its last digits, as in Java; if no digit is left that names
    a group, the text is kept as it is.
    """

    def part(reference: re.Match[str]) -> str:
        escaped, number, name = reference.groups()
        if escaped is not None:
            return str(escaped)
        if name is not None:
            return str(match[name] or "") if name in match.re.groupindex else str(reference[0])
        for size in range(len(number), 0, -1):
            if int(number[:size]) <= match.re.groups:
                return str(match[int(number[:size])] or "") + number[size:]
        return str(reference[0])

    return _REFERENCE.sub(part, replacement)
