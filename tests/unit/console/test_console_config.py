"""The console's settings."""

from __future__ import annotations

import pytest

from barnabas.base.errors import ConfigError
from barnabas.console.config import ConsoleConfig

SERVERS = {"bootstrap.servers": "a:9092,b:9092"}


def test_defaults() -> None:
    config = ConsoleConfig(SERVERS)
    assert [str(one) for one in config.listeners] == ["http://127.0.0.1:8090"]
    assert config.is_on_loopback
    assert not config.is_read_only
    assert config.client == {}
    assert set(config.roles) == {"admin", "editor", "viewer"}


def test_settings_of_clients() -> None:
    config = ConsoleConfig(
        {"client.security.protocol": "SSL"},
        {"bootstrap.servers": "c:9092", "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"},
    )
    assert config.bootstrap_servers == "c:9092"
    assert config.client == {"security.protocol": "SSL", "sasl.mechanism": "PLAIN"}


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({}, "bootstrap.servers"),
        ({"bootstrap.servers": "nowhere"}, "bootstrap.servers"),
        ({**SERVERS, "listeners": "ftp://x:1"}, "listeners"),
        ({**SERVERS, "listeners": "http://127.0.0.1"}, "listeners"),
        ({**SERVERS, "listeners": "http://127.0.0.1:999999"}, "listeners"),
        ({**SERVERS, "listeners": "http://0.0.0.0:8090"}, "console.users.file"),
        ({**SERVERS, "schema.registry.url": "localhost:8081"}, "schema.registry.url"),
        ({**SERVERS, "schema.registry.url": "http://a:nowhere"}, "schema.registry.url"),
        ({**SERVERS, "schema.registry.url": "http://[a"}, "schema.registry.url"),
        ({**SERVERS, "console.colour": "red"}, "console.colour"),
        ({**SERVERS, "sasl.mechanism": "PLAIN"}, "sasl.mechanism"),
        ({**SERVERS, "console.session.minutes": "0"}, "console.session.minutes"),
        ({**SERVERS, "console.session.minutes": "long"}, "console.session.minutes"),
        ({**SERVERS, "console.read.only": "maybe"}, "console.read.only"),
    ],
)
def test_what_cannot_be_meant_is_refused(values: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError) as error:
        ConsoleConfig(values)
    assert key in str(error.value)


def test_a_wrong_address_is_told_without_its_login() -> None:
    with pytest.raises(ConfigError) as error:
        ConsoleConfig({**SERVERS, "schema.registry.url": "ftp://me:secret@a"})
    assert "'ftp://a'" in str(error.value)
    assert "secret" not in str(error.value)
