"""Regular expressions of subscriptions, however they are made, cost little."""

import pytest

from barnabas.node.coordinator.group.consumer.regexes import compile_regex, matches
from barnabas.node.coordinator.group.step import Refusal
from barnabas.protocol.errors import ErrorCode

NAME = "t" * 249
"""The longest name that a topic has."""
REFUSED = {
    "repetitions of repetitions": ("((a{100}){100}){100}", "invalid repeat count"),
    "too many repetitions": ("a{1001}", "invalid repeat count"),
    "a program of many megabytes": (r"\pL{1000}", "expression too large"),
    "many large parts": (r"(?i)" + r"\pL{100}" * 300, "expression too large"),
    "open groups": ("(" * 20_000, "missing closing )"),
    "what is not UTF-8": ("\ud800", ""),
}


@pytest.mark.parametrize("case", REFUSED)
def test_expressions_that_would_take_too_much_are_refused(case: str) -> None:
    regex, reason = REFUSED[case]
    compiled = compile_regex(regex)
    assert isinstance(compiled, Refusal)
    assert compiled.error == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert reason in (compiled.message or "")


@pytest.mark.parametrize(
    ("regex", "found"),
    [
        ("(t+t+)+y", False),  # exponential where an engine goes back
        ("(t*)*(t*)*(t*)*x", False),
        ("t{1000}", False),
        ("[a-z]{249}", True),
        ("(" * 500 + "t*" + ")" * 500, True),
        ("|".join(f"topic-{number}" for number in range(3000)) + "|t+", True),
    ],
)
def test_hard_expressions_are_matched_all_the_same(regex: str, found: bool) -> None:
    compiled = compile_regex(regex)
    assert not isinstance(compiled, Refusal)
    assert matches(compiled, NAME) is found
