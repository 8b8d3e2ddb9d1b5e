"""A connector's configuration cannot make the worker's Kafka clients run code."""

from __future__ import annotations

import pytest

from barnabas.connect.config import client_overrides
from barnabas.connect.config.answers import errors_of
from barnabas.connect.config.client_overrides import ALLOWLIST, POLICY, override_policy
from barnabas.connect.config.validation import WorkerRules, validate_connector
from barnabas.connect.connectors.mirror import settings as mirror
from barnabas.connect.connectors.mirror.dedicated import read_flows
from barnabas.connect.connectors.mirror.flow import Flow
from barnabas.connect.connectors.postgres.settings import PostgresSettings
from barnabas.connect.tasks.clients import admin_settings, consumer_settings, producer_settings
from barnabas.schemas.data.errors import ConfigError
from support.connect.herder_world import SOURCE

WORKER = {"bootstrap.servers": "127.0.0.1:1"}
DANGEROUS = (
    "ssl.engine.location",
    "ssl.engine.id",
    "ssl.providers",
    "ssl.engine.factory.class",
    "plugin.library.paths",
    "sasl.kerberos.kinit.cmd",
    "sasl.kerberos.principal",  # both are put into the command
    "sasl.kerberos.keytab",
    "sasl.oauthbearer.config",
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.oauthbearer.assertion.file",
    "sasl.oauthbearer.jwks.endpoint.url",
    "sasl.login.callback.handler.class",
    "interceptor.classes",
    "metric.reporters",
    "security.providers",
    "debug",
    "log_cb",
    "no.such.setting",
)
OAUTH = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
"""A mechanism whose settings are passed to librdkafka as they are."""


@pytest.fixture(autouse=True)
def nothing_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_overrides, "_added", set())


def overrides(client: str, given: dict[str, str]) -> dict[str, str]:
    return {f"{client}.override.{name}": value for name, value in given.items()}


@pytest.mark.parametrize("name", DANGEROUS)
def test_validation_names_what_it_refuses(name: str) -> None:
    given = {"name": "c", "connector.class": SOURCE, "topic": "t"}
    given |= overrides("producer", {**OAUTH, name: "/tmp/x.so"})
    answer = validate_connector(given, WorkerRules())
    (text,) = errors_of(answer)
    assert f"'All' policy does not allow '{name}' to be overridden" in text
    assert ALLOWLIST in text


@pytest.mark.parametrize("name", DANGEROUS)
def test_clients_refuse_it_too_when_it_comes_from_the_config_topic(name: str) -> None:
    given = {**OAUTH, name: "x"}
    refused = pytest.raises(ConfigError, match=f"override.{name}: .* does not allow '{name}'")
    with refused:
        producer_settings("p", overrides("producer", given), WORKER)
    with refused:
        consumer_settings("c", overrides("consumer", given), WORKER)
    with refused:
        admin_settings(overrides("admin", given), WORKER)


@pytest.mark.parametrize(
    ("prefix", "name"),
    [
        ("source.cluster.", "ssl.engine.location"),
        ("target.cluster.", "sasl.kerberos.kinit.cmd"),
        ("source.consumer.", "ssl.engine.location"),
        ("target.producer.", "sasl.oauthbearer.config"),
        ("consumer.", "plugin.library.paths"),
        ("target.admin.", "ssl.providers"),
    ],
)
@pytest.mark.parametrize("kind", ["Source", "Checkpoint", "Heartbeat"])
def test_connectors_that_mirror_refuse_it_for_both_clusters(
    kind: str, prefix: str, name: str
) -> None:
    given = {
        "name": "m",
        "connector.class": f"org.apache.kafka.connect.mirror.Mirror{kind}Connector",
        "source.cluster.alias": "a",
        "target.cluster.alias": "b",
        "source.cluster.bootstrap.servers": "127.0.0.1:1",
        "target.cluster.bootstrap.servers": "127.0.0.1:1",
        "source.consumer.isolation.level": "read_committed",
        "consumer.poll.timeout.ms": "100",
        "admin.timeout.ms": "1000",
        prefix + name: "/tmp/x.so",
    }
    answer = validate_connector(given, WorkerRules())
    (text,) = errors_of(answer)
    assert f"does not allow '{name}'" in text
    with pytest.raises(ConfigError, match=f"^{prefix}{name}: "):
        Flow.read(given, mirror.SOURCE)


def test_the_consumer_of_signals_is_a_client_too() -> None:
    given = {
        "topic.prefix": "p",
        "database.hostname": "127.0.0.1",
        "database.user": "u",
        "database.dbname": "d",
        "signal.consumer.ssl.engine.location": "/tmp/x.so",
    }
    with pytest.raises(ConfigError, match=r"^signal\.consumer\.ssl\.engine\.location: "):
        PostgresSettings.parse(given)


def test_the_workers_own_settings_are_not_limited() -> None:
    own = {**WORKER, **OAUTH, "sasl.oauthbearer.config": "principal=me"}
    assert producer_settings("p", {}, own)["sasl.oauthbearer.config"] == "principal=me"


def test_the_worker_may_allow_more() -> None:
    given = overrides("producer", {**OAUTH, "sasl.oauthbearer.config": "principal=me"})
    client_overrides.allow_clients_of_worker({ALLOWLIST: "sasl.oauthbearer.config, ssl.engine.id"})
    found = producer_settings("p", given, WORKER)
    assert found["sasl.oauthbearer.config"] == "principal=me"


def test_policies_are_those_of_kafka() -> None:
    package = "org.apache.kafka.connect.connector.policy."
    name = f"{package}AllowlistConnectorClientConfigOverridePolicy"
    assert override_policy({POLICY: name}) == "Allowlist"
    with pytest.raises(ConfigError, match="one of All, Allowlist, None, Principal"):
        override_policy({POLICY: "Every"})
    worker = {**WORKER, POLICY: "Allowlist", ALLOWLIST: "acks"}
    client_overrides.allow_clients_of_worker(worker)
    assert producer_settings("p", overrides("producer", {"acks": "1"}), worker)["acks"] == "1"
    with pytest.raises(ConfigError, match=r"The 'Allowlist' policy does not allow 'linger\.ms'"):
        producer_settings("p", overrides("producer", {"linger.ms": "1"}), worker)


def test_a_file_of_mirror_maker_sets_what_it_likes() -> None:
    (flow, *_) = read_flows(
        {
            "clusters": "a,b",
            "a.bootstrap.servers": "127.0.0.1:1",
            "b.bootstrap.servers": "127.0.0.1:1",
            "a->b.enabled": "true",
            "a.sasl.mechanism": "GSSAPI",
            "a.sasl.kerberos.keytab": "/etc/a.keytab",
            "b.consumer.interceptor.classes": "x",
        }
    )
    assert flow.worker[ALLOWLIST] == "interceptor.classes,sasl.kerberos.keytab"
