"""Java's login configurations (JAAS), as far as Kafka's and Confluent's files use them.

    Section {
      some.LoginModule required option="value";
    };

A property such as `sasl.jaas.config` holds the middle line alone.
"""

import re
from dataclasses import dataclass
from typing import Final

_COMMENT = re.compile(r"\"(?:[^\"\\]|\\.)*\"|/\*.*?\*/|(?<!:)//[^\n]*", re.DOTALL)
_SECTION = re.compile(r"([\w.-]+)\s*\{((?:\"(?:[^\"\\]|\\.)*\"|[^}\"])*)\}\s*;?")

_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)|(?P<mark>[=;])
    |(?P<quote>["'])(?P<quoted>(?:(?!(?P=quote))[^\\\n]|\\.)*)(?P=quote)
    |(?P<word>(?:(?!//|/\*)[^\s=;"'])+)""",
    re.DOTALL | re.VERBOSE,
)
_FLAGS: Final = ("required", "requisite", "sufficient", "optional")


class JaasError(ValueError):
    """A login configuration that Java would not read. The text holds nothing of it."""


@dataclass(frozen=True, slots=True)
class LoginModule:
    """One entry of a login configuration."""

    name: str
    """Its Java class."""
    options: dict[str, str]

    def __repr__(self) -> str:
        return f"LoginModule({self.name})"


def login_modules(text: str) -> list[LoginModule]:
    """The entries of a property such as `sasl.jaas.config`. Raises JaasError.

    Source: JaasConfig of Kafka, whose texts are kept but for keys, which a missing quote may
    make of a password.
    """
    tokens = _tokens(text)
    modules = []
    while tokens:
        (_, name), *tokens = tokens
        if not tokens:
            raise JaasError("Login module control flag not specified in JAAS config")
        (_, flag), *tokens = tokens
        if flag.lower() not in _FLAGS:
            raise JaasError("Invalid login module control flag in JAAS config")
        options: dict[str, str] = {}
        while tokens and tokens[0] != (True, ";"):
            match tokens[:3]:
                case [(False, key), (True, "="), (False, value)]:
                    options[key] = value
                    tokens = tokens[3:]
                case _:
                    where = f"after {len(options)} options" if options else "for the first key"
                    raise JaasError(f"Value not specified {where} in JAAS config")
        if not tokens:
            raise JaasError("JAAS config entry not terminated by semi-colon")
        tokens = tokens[1:]
        modules.append(LoginModule(name, options))
    if not modules:
        raise JaasError("Login module not specified in JAAS config")
    return modules


def _tokens(text: str) -> list[tuple[bool, str]]:
    """Words and values as (False, text), `=` and `;` as (True, text)."""
    tokens = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise JaasError("A quote is not closed in JAAS config")
        position = match.end()
        if match["mark"]:
            tokens.append((True, match["mark"]))
        elif match["quote"]:
            tokens.append((False, re.sub(r"\\(.)", r"\1", match["quoted"])))
        elif match["word"]:
            tokens.append((False, match["word"]))
    return tokens


def jaas_options(text: str) -> dict[str, str]:
    """The options of the first entry; none for an empty text. Raises JaasError."""
    return login_modules(text)[0].options if text.strip() else {}


def jaas_sections(text: str) -> dict[str, str]:
    """The sections of a login configuration file by name."""
    plain = _COMMENT.sub(lambda match: match[0] if match[0].startswith('"') else " ", text)
    return {match[1]: match[2].strip() for match in _SECTION.finditer(plain)}
