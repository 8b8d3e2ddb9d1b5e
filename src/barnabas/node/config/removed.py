"""Keys of Kafka before 4.0, so that an older file is answered with what to do instead."""

ZOOKEEPER_PREFIXES = ("zookeeper.",)

REFUSED: dict[str, str] = {
    "broker.id.generation.enable": "brokers get their number from node.id; remove the line",
    "control.plane.listener.name": "the controller has its own listeners; use "
    "controller.listener.names",
    "inter.broker.protocol.version": "the cluster's metadata.version feature decides; remove "
    "the line",
    "log.message.format.version": "all data has format 2; remove the line",
    "password.encoder.secret": "it belonged to ZooKeeper; remove the line",
    "zookeeper.metadata.migration.enable": "there is no ZooKeeper here; migrate with Kafka 3.9 "
    "first",
}
"""Keys that ask for something that no longer exists, with what to do."""

IGNORED: dict[str, str] = {
    "auto.include.jmx.reporter": "there is no JMX here",
    "controlled.shutdown.max.retries": "Kafka 4.0 removed it",
    "controlled.shutdown.retry.backoff.ms": "Kafka 4.0 removed it",
    "controller.quorum.bootstrap.voters": "use controller.quorum.bootstrap.servers",
    "log.message.downconversion.enable": "Kafka 4.0 removed it",
    "log.message.timestamp.difference.max.ms": "use log.message.timestamp.before.max.ms and "
    "log.message.timestamp.after.max.ms",
    "metadata.max.age.ms": "it is a client's key",
    "offsets.commit.required.acks": "Kafka 4.0 removed it",
    "reserved.broker.max.id": "Kafka 4.0 removed it",
}
"""Keys that may stay in a file without harm, with a word about each."""


def refusal(key: str) -> str | None:
    """Why a removed key stops the node, or None."""
    if key in REFUSED:
        return f"is not supported: {REFUSED[key]}"
    if key.startswith(ZOOKEEPER_PREFIXES):
        return "is not supported: metadata is kept by controllers (KRaft), not by ZooKeeper"
    return None
