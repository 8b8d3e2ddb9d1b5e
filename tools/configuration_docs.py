"""Writes the documents of keys from their tables: `python tools/configuration_docs.py`.

docs/CONFIGURATION.md has a node's keys, docs/REGISTRY_CONFIGURATION.md those of the registry.
"""

from collections.abc import Iterable
from pathlib import Path

from barnabas.base.config.definitions import ConfigKey, Status
from barnabas.node.config.definitions import (
    BROKER_TABLES,
    CLIENT_METRICS_KEYS,
    GROUP_KEYS,
    TOPIC_KEYS,
    load_table,
)
from barnabas.node.config.removed import IGNORED, REFUSED
from barnabas.node.config.topic import BROKER_SYNONYMS
from barnabas.registry.config import KEYS as REGISTRY_KEYS

DOCS = Path(__file__).parents[1] / "docs"
TITLES = {
    "server": "Node, listeners, connections",
    "log": "Log",
    "replication": "Replication",
    "quorum": "Controller quorum",
    "groups": "Consumer groups",
    "share": "Share groups",
    "streams": "Streams groups",
    "transactions": "Transactions",
    "quotas": "Quotas and metrics",
    "tiering": "Tiered storage",
    "security": "Security",
    "authorizer": "Authorization",
    "oauth": "OAuth",
    "tls": "TLS",
    "schemas": "Schema validation",
    "metrics": "Metrics over HTTP",
}
HEAD = """\
# Configuration

`tools/configuration_docs.py` writes this page from `src/barnabas/node/config/keys/`; a test checks
that they agree. Names, types, defaults and scopes are Apache Kafka 4.3's, but for the keys that
begin with `confluent.` or `barnabas.`. The first are Confluent Server's;
[schema-validation.md](schema-validation.md) explains them. The second are our own.

A node takes its values from its properties file, then the environment, then
`--override key=value`; later ones override earlier ones. In the environment `log.retention.ms` is
`BARNABAS_LOG_RETENTION_MS`; `__` stands for `_` and `___` for `-`.

The status of a key says what happens when it is set:

- **supported**: it does what it does in Kafka.
- **planned**: the node checks it, but it has no effect yet. If its value is not the default, the
  node says so in one line at its start.
- **moot**: nothing here needs it (thread pools, purgatories); the node accepts it silently.
- **refused**: it is not supported yet and ignoring it would be unsafe, so the node does not start.
- **never**: it names a Java class or something else that does not exist here: the node does not
  start if it is set to anything but its default.

For a key that Kafka 4.3 does not have, the node prints one line with the key that may have been
meant. Keys of Kafka's internal tests are left out below.
"""


REGISTRY_HEAD = """\
# Configuration of the schema registry

`tools/configuration_docs.py` writes this page from `src/barnabas/registry/keys.txt`; a test checks
that they agree. Names, types and defaults are those of Confluent's `schema-registry.properties`.
`--bootstrap-servers`, `--listeners` and `--override key=value` of `barnabas registry start` win
over it. [registry.md](registry.md) explains the registry.

The status of a key says what happens when it is set:

- **supported**: it does what it does in Confluent's registry.
- **planned**: it is checked and has no effect yet. If its value is not the default, the registry
  says so in one line at its start.
- **moot**: nothing here needs it; it is accepted silently.
- **never**: it names a Java class or something else that does not exist here, or it would be unsafe
  to ignore it: the registry does not start if it is set to anything but its default.

For a key that is not in the table, the registry prints one line at its start. What follows
`kafkastore.topic.config.` is a key of the topic, used when the topic is created.
"""


def main() -> None:
    """Write the files."""
    for name, content in documents().items():
        (DOCS / name).write_text(content, encoding="utf-8")


def documents() -> dict[str, str]:
    """The documents, by the names of their files."""
    registry = f"{REGISTRY_HEAD}\n{_table(REGISTRY_KEYS.values())}"
    return {"CONFIGURATION.md": text(), "REGISTRY_CONFIGURATION.md": registry}


def text() -> str:
    """The document of a node's keys."""
    parts = [HEAD]
    parts += [
        f"## {TITLES[table]}\n\n{_table(load_table(table).values())}" for table in BROKER_TABLES
    ]
    parts.append(f"## Topics\n\n{_table(TOPIC_KEYS.values(), synonyms=True)}")
    parts.append(f"## Groups\n\n{_table(GROUP_KEYS.values())}")
    parts.append(f"## Client metrics subscriptions\n\n{_table(CLIENT_METRICS_KEYS.values())}")
    gone = [f"- `{key}`: refused; {why}." for key, why in sorted(REFUSED.items())]
    gone += [f"- `{key}`: ignored; {why}." for key, why in sorted(IGNORED.items())]
    gone.append("- `zookeeper.*`: refused; there is no ZooKeeper here.")
    parts.append("## Keys of older versions\n\n" + "\n".join(gone) + "\n")
    return "\n".join(parts)


def _table(keys: Iterable[ConfigKey], *, synonyms: bool = False) -> str:
    lines = ["| Key | Type | Default | Scope | Status | |", "|---|---|---|---|---|---|"]
    for key in keys:
        if key.internal:
            continue
        doc = key.doc
        if synonyms and key.name in BROKER_SYNONYMS:
            names = ", ".join(f"`{name}`" for name, _ in BROKER_SYNONYMS[key.name])
            doc += f" Default from {names}."
        status = f"**{key.status}**" if key.status is Status.SUPPORTED else key.status.value
        cells = (f"`{key.name}`", key.type, _default(key), key.scope, status, doc)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _default(key: ConfigKey) -> str:
    if key.required:
        return "(must be set)"
    if key.default_text is None:
        return "(none)"
    return f"`{key.default_text}`" if key.default_text else "(empty)"


if __name__ == "__main__":
    main()
