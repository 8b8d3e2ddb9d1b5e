"""The code reads each key that the tables of configuration keys call supported."""

from __future__ import annotations

import dataclasses
import importlib.util
import re
from pathlib import Path

from barnabas.base.config.definitions import Status
from barnabas.node.config.definitions import BROKER_KEYS, TOPIC_KEYS
from barnabas.node.config.topic import BROKER_SYNONYMS
from barnabas.node.log.config import LogConfig

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src" / "barnabas"
BY_TOPICS = {broker_key for synonyms in BROKER_SYNONYMS.values() for broker_key, _ in synonyms}
READ_BY_NODE_CONFIG = {
    "sasl.enabled.mechanisms",
    "sasl.jaas.config",
    "sasl.oauthbearer.jwt.validator.class",
    "sasl.server.callback.handler.class",
    "advertised.listeners",
    "listener.security.protocol.map",
    "inter.broker.listener.name",
    "security.inter.broker.protocol",
    "log.dir",
    "metadata.log.dir",
    "controller.quorum.bootstrap.servers",
}
"""Keys behind NodeConfig's derived values."""


NAMED_KEY = re.compile(r'^([A-Z_]+_KEY) = ("[a-z.]+")$', re.MULTILINE)

KEY_OF_EACH_KIND = re.compile(r'f"group\.\{kind\}(\.[a-z.]+)"')
KINDS = ("consumer", "share", "streams")


def code() -> str:
    """All modules but those of the configuration itself.

    Keys that they use by a name, or for each kind of group, are spelled.
    """
    text = "".join(
        path.read_text()
        for path in sorted(SOURCE.rglob("*.py"))
        if not path.is_relative_to(SOURCE / "base" / "config")
    )
    for path in sorted((SOURCE / "base" / "config").glob("*.py")):
        for name, key in NAMED_KEY.findall(path.read_text()):
            if re.search(rf"\b{name}\b", text):
                text += key
    for rest in KEY_OF_EACH_KIND.findall(text):
        text += "".join(f'"group.{kind}{rest}"' for kind in KINDS)
    return text


def test_a_supported_broker_key_is_read() -> None:
    text = code()
    unread = [
        key.name
        for key in BROKER_KEYS.values()
        if key.status is Status.SUPPORTED
        and f'"{key.name}"' not in text
        and key.name not in BY_TOPICS | READ_BY_NODE_CONFIG
    ]
    assert unread == []


def test_a_supported_topic_key_is_read() -> None:
    text = code()
    fields = {field.name for field in dataclasses.fields(LogConfig)}
    unread = [
        key.name
        for key in TOPIC_KEYS.values()
        if key.status is Status.SUPPORTED
        and key.name.replace(".", "_") not in fields
        and f'"{key.name}"' not in text
    ]
    assert unread == []


def test_the_documents_of_keys_are_up_to_date() -> None:
    path = ROOT / "tools" / "configuration_docs.py"
    spec = importlib.util.spec_from_file_location("configuration_docs", path)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    for name, text in tool.documents().items():
        written = (ROOT / "docs" / name).read_text()
        assert written == text, "run python tools/configuration_docs.py"
