"""Random configuration files are either read or refused with ConfigError."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import example, given
from hypothesis import strategies as st

from barnabas.base.config.properties import format_properties, parse_properties
from barnabas.base.errors import ConfigError
from barnabas.node.config.definitions import BROKER_KEYS
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.config.topic import TOPIC_CONFIG_DEFS, validate_topic_overrides

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = st.one_of(
    TEXTS,
    st.integers().map(str),
    st.floats().map(str),
    st.lists(
        st.sampled_from(["a:1", "1@a:1", "PLAINTEXT://:1", "", "x", "*", "[::1]:1"]), max_size=4
    ).map(",".join),
)
COMBINED = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@localhost:9093",
}


@given(st.dictionaries(TEXTS, TEXTS, max_size=5))
@example({"": "", "a b": " c ", "=": ":", "#": "!", "\\": "\\", "\n": "\r", "\u2028": "\x85\x1c"})
def test_properties_go_round(values: dict[str, str]) -> None:
    assert parse_properties(format_properties(values)) == values


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    error = refusal(lambda: parse_properties(text))
    assert error is None or "malformed" in str(error)


@given(st.dictionaries(st.one_of(st.sampled_from(sorted(BROKER_KEYS)), TEXTS), VALUES, max_size=4))
def test_any_node_is_configured_or_refused(values: dict[str, str]) -> None:
    error = refusal(lambda: repr(NodeConfig.from_properties(COMBINED | values)))
    if error is not None:
        assert isinstance(error, ConfigError)
        assert str(error).startswith(error.key)


@given(st.dictionaries(st.sampled_from(sorted(TOPIC_CONFIG_DEFS)), VALUES, max_size=4))
def test_any_topic_is_configured_or_refused(values: dict[str, str]) -> None:
    error = refusal(lambda: validate_topic_overrides(values))
    if error is not None:
        assert isinstance(error, ConfigError)
        assert error.key in values


def refusal(action: Callable[[], object]) -> ValueError | None:
    """The ValueError that `action` raises, or None."""
    try:
        action()
    except ValueError as error:
        return error
    return None
