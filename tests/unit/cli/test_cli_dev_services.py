"""How `barnabas dev` starts the services beside its nodes: as a user does, on the command line."""

from __future__ import annotations

from barnabas.base.config.properties import from_flags
from barnabas.cli.dev.services import Beside
from barnabas.cli.registry.command import start_command
from barnabas.registry.config import RegistryConfig


def test_a_busy_machine_fails_no_write_of_the_registry() -> None:
    group, command, *rest = Beside("127.0.0.1", 5, None, None).registry(18081).command
    assert (group, command) == ("registry", "start")
    params = start_command.make_context("start", rest).params
    assert params["listeners"] == "http://127.0.0.1:18081"
    brokers = {"kafkastore.bootstrap.servers": "a:1"}
    config = RegistryConfig(brokers | from_flags(params["overrides"]))
    assert config.get_int("kafkastore.timeout.ms") == 30_000
    assert config.get_int("kafkastore.topic.replication.factor") == 3
