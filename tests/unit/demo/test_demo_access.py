"""The users of the secure demo: their files, and that none may more than it needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.app.secured import ADMIN
from barnabas.base.config.properties import parse_properties
from barnabas.demo.access import (
    CONFIG_VARIABLE,
    CONSOLE,
    DASHBOARD,
    GENERATORS,
    REGISTRY,
    SQL_SERVER,
    USERS,
    Access,
    client_config,
    rights,
)
from barnabas.demo.topics import INPUT_TOPICS, OUTPUT_TOPICS
from barnabas.protocol.acls import Operation, ResourceType

WRITING = {Operation.ALL, Operation.WRITE, Operation.DELETE, Operation.ALTER}


def test_only_the_sql_server_writes_results_and_only_generators_write_input() -> None:
    found = rights("service")
    for user, forbidden in (
        (DASHBOARD, (*INPUT_TOPICS, *OUTPUT_TOPICS)),
        (CONSOLE, (*INPUT_TOPICS, *OUTPUT_TOPICS, "_schemas")),
        (SQL_SERVER, INPUT_TOPICS),
        (REGISTRY, (*INPUT_TOPICS, *OUTPUT_TOPICS)),
    ):
        for right in found:
            if right.user == user and right.resource_type is ResourceType.TOPIC:
                is_its_own = right.name not in forbidden
                assert is_its_own or not WRITING & set(right.operations), (user, right)
    assert not any(right.user == ADMIN for right in found), "a super user needs none"
    assert not any(right.name == "*" for right in found)


def test_each_process_reads_its_own_login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    access = Access(str(tmp_path), "service")
    access.write_files("127.0.0.1:1")
    passwords = set()
    for user in USERS:
        monkeypatch.setenv(CONFIG_VARIABLE, access.environment(user)[CONFIG_VARIABLE])
        config = client_config("127.0.0.1:9")
        assert config["bootstrap.servers"] == "127.0.0.1:9"
        assert config["sasl.username"] == user
        passwords.add(config["sasl.password"])
    assert len(passwords) == len(USERS)
    with open(access.registry_file) as file:
        registry = parse_properties(file.read())
    assert registry["kafkastore.security.protocol"] == "SASL_SSL"
    with open(access.sql_file) as file:
        assert f'username="{SQL_SERVER}"' in parse_properties(file.read())["sasl.jaas.config"]
    for path in (tmp_path / "security").iterdir():
        assert path.stat().st_mode & 0o777 == 0o600, path
    again = Access(str(tmp_path), "service")
    assert again.secured.passwords == access.secured.passwords
    assert GENERATORS in again.secured.users
    monkeypatch.delenv(CONFIG_VARIABLE)
    assert client_config("a:1") == {"bootstrap.servers": "a:1"}
