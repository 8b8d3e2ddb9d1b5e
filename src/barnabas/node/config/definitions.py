"""Every configuration key of Kafka 4.3, and a few of Confluent Server, read from `keys/`.

`base/config/definitions.py` describes the tables. Names, types, defaults and checks are Kafka's
(KafkaConfig, LogConfig, GroupConfig and ClientMetricsConfigs of 4.3.1); a test holds them against a
dump of its definitions. What `ADDED_TABLES` hold is not among them: the keys that Kafka's
StandardAuthorizer reads by itself, and those of schema validation, which are Confluent Server's.
"""

import os
import re
from collections.abc import Mapping

from barnabas.base.config.definitions import ConfigKey, read_table

TABLES_DIRECTORY = os.path.join(os.path.dirname(__file__), "keys")
BROKER_TABLES = (
    "server",
    "log",
    "replication",
    "quorum",
    "groups",
    "share",
    "streams",
    "transactions",
    "quotas",
    "tiering",
    "security",
    "authorizer",
    "oauth",
    "tls",
    "schemas",
    "metrics",
)
ADDED_TABLES = ("authorizer", "schemas", "metrics", "topic_schemas")
"""Tables of keys that Kafka's own definitions lack: its authorizer's, Confluent's, ours."""
LOG_FORMAT_KEY = "barnabas.log.format"
LEADER_RATE_KEY = "leader.replication.throttled.rate"
FOLLOWER_RATE_KEY = "follower.replication.throttled.rate"
LEADER_REPLICAS_KEY = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS_KEY = "follower.replication.throttled.replicas"
MOVE_RATE_KEY = "replica.alter.log.dirs.io.max.bytes.per.second"
DYNAMIC_ONLY = frozenset({FOLLOWER_RATE_KEY, LEADER_RATE_KEY, MOVE_RATE_KEY})
"""No keys of a file, where they have no effect."""


def load_table(name: str) -> dict[str, ConfigKey]:
    """The keys of one table of Kafka's, in its order."""
    return read_table(os.path.join(TABLES_DIRECTORY, name + ".txt"))


def _load_broker_keys() -> dict[str, ConfigKey]:
    keys: dict[str, ConfigKey] = {}
    for table in BROKER_TABLES:
        keys.update(load_table(table))
    return keys


BROKER_KEYS: dict[str, ConfigKey] = _load_broker_keys()
"""Broker keys by name, the ones that can only be set dynamically among them."""
TOPIC_KEYS: dict[str, ConfigKey] = {**load_table("topic"), **load_table("topic_schemas")}
GROUP_KEYS: dict[str, ConfigKey] = load_table("group")
CLIENT_METRICS_KEYS: dict[str, ConfigKey] = load_table("client_metrics")

# Values from the environment, on top of a file's; those of `--override` are on top of both.
#
# Variables follow the rule of Kafka's Docker images under our own prefix: BARNABAS_LOG_RETENTION_MS
# is log.retention.ms; `__` is `_` and `___` is `-`.

PREFIX = "BARNABAS_"
_UNDERSCORES = re.compile(r"___|__|_")
_CHARACTER_OF = {"_": ".", "__": "_", "___": "-"}


def key_of_variable(variable: str) -> str:
    """The key that an environment variable sets."""
    name = variable.removeprefix(PREFIX).lower()
    return _UNDERSCORES.sub(lambda match: _CHARACTER_OF[match[0]], name)


def from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Broker keys among the variables; others of our prefix belong to the command line."""
    values: dict[str, str] = {}
    for variable, value in environment.items():
        if not variable.startswith(PREFIX):
            continue
        key = key_of_variable(variable)
        if key in BROKER_KEYS or key.startswith("listener.name."):
            values[key] = value
    return values
