"""How the demo starts its schema registry: as a user does, on the command line."""

from __future__ import annotations

import sys
from typing import Any

from barnabas.base.config.properties import from_flags
from barnabas.cli.registry.command import start_command
from barnabas.demo.parts.servers import registry_spec
from barnabas.demo.workspace import Settings
from barnabas.registry.config import RegistryConfig

SETTINGS = Settings(0, 0, 0, "", [], [], 0, registry_port=18081)


def typed(*, is_own_cluster: bool) -> tuple[dict[str, Any], RegistryConfig]:
    """What `barnabas registry start` makes of the command: its options, and the overrides."""
    python, *rest = registry_spec(SETTINGS, "a:1,b:2", is_own_cluster=is_own_cluster).command
    assert python == sys.executable
    assert rest[:4] == ["-m", "barnabas", "registry", "start"]
    params = start_command.make_context("start", rest[4:]).params
    brokers = {"kafkastore.bootstrap.servers": params["bootstrap_servers"]}
    return params, RegistryConfig(brokers | from_flags(params["overrides"]))


def test_a_registry_of_the_demos_own_cluster() -> None:
    params, config = typed(is_own_cluster=True)
    assert (params["bootstrap_servers"], params["properties"]) == ("a:1,b:2", None)
    assert params["listeners"] == "http://127.0.0.1:18081"
    assert config.topic == "_schemas"
    assert config.get_int("kafkastore.timeout.ms") == 10_000


def test_on_another_cluster_it_keeps_away_from_a_registry_that_is_there() -> None:
    _, config = typed(is_own_cluster=False)
    assert config.topic == "_barnabas-demo-schemas"
    assert config.get_str("schema.registry.group.id") == "barnabas-demo-schema-registry"
