"""Java's login configurations (JAAS), as far as Kafka's and Confluent's files use them.

    Section {
      some.LoginModule required option="value";
    };

A property such as `sasl.jaas.config` holds the middle line alone.
"""

import re

_OPTION = re.compile(r"(\w+)\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'|([^\s;\"']+))")
_COMMENT = re.compile(r"\"(?:[^\"\\]|\\.)*\"|/\*.*?\*/|(?<!:)//[^\n]*", re.DOTALL)
_SECTION = re.compile(r"([\w.-]+)\s*\{((?:\"(?:[^\"\\]|\\.)*\"|[^}\"])*)\}\s*;?")


def jaas_options(text: str) -> dict[str, str]:
    """The options of a login module in JAAS's notation."""
    options = {}
    for match in _OPTION.finditer(text):
        quoted = match[2] if match[2] is not None else match[3]
        options[match[1]] = match[4] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
    return options


def jaas_sections(text: str) -> dict[str, str]:
    """The sections of a login configuration file by name."""
    plain = _COMMENT.sub(lambda match: match[0] if match[0].startswith('"') else " ", text)
    return {match[1]: match[2].strip() for match in _SECTION.finditer(plain)}
