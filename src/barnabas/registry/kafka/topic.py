"""The topic of the registry: created where it is missing, checked where it is there."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiokafka import errors
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from barnabas.registry.config import RegistryConfig
from barnabas.registry.kafka.connection import Connection
from barnabas.registry.kafka.faults import TROUBLE, StoreError, words

CLEANUP_POLICY = "cleanup.policy"
MESSAGE_BYTES = "max.message.bytes"
MESSAGE_BYTES_DEFAULT = 1048588

telemetry = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """Facts about the topic and its cluster, learned at the start."""

    cluster_id: str = ""
    message_bytes_max: int = MESSAGE_BYTES_DEFAULT
    """The largest batch of records that the brokers take."""


async def prepare_topic(config: RegistryConfig, connection: Connection) -> TopicFacts:
    """Create the topic, or check the one that is there.

    With `kafkastore.topic.skip.validation` it is taken as it is. Tries again while brokers cannot
    be reached, until `kafkastore.init.timeout.ms`. Raises StoreError if the topic cannot be used,
    or is not there in time.
    """
    last: BaseException | None = None
    try:
        async with asyncio.timeout(config.init_timeout_ms / 1000):
            while True:
                try:
                    async with _admin(connection) as admin:
                        return await _create_or_check(config, admin)
                except (
                    errors.AuthenticationFailedError,
                    errors.UnsupportedSaslMechanismError,
                    errors.TopicAuthorizationFailedError,
                ) as error:
                    raise StoreError(f"topic {config.topic}: {words(error)}") from error
                except TROUBLE as error:
                    if last is None or words(last) != words(error):
                        telemetry.info("topic %s: %s; trying again", config.topic, words(error))
                    last = error
                await asyncio.sleep(connection.retry_backoff_ms / 1000)
    except TimeoutError as error:
        why = "no answer" if last is None else words(last)
        raise StoreError(
            f"topic {config.topic} could not be looked up or created at "
            f"{','.join(config.bootstrap_servers)} within {config.init_timeout_ms} ms: {why}"
        ) from error


@asynccontextmanager
async def _admin(connection: Connection) -> AsyncIterator[Any]:
    admin = AIOKafkaAdminClient(**connection.options("admin"))
    try:
        await admin.start()
        yield admin
    finally:
        await admin.close()


async def _create_or_check(config: RegistryConfig, admin: Any) -> TopicFacts:
    cluster = await admin.describe_cluster()
    cluster_id = cluster.get("cluster_id") or ""
    if config.get_bool("kafkastore.topic.skip.validation"):
        return TopicFacts(cluster_id)
    is_new = config.topic not in await admin.list_topics()
    if is_new:
        await _create(config, admin, len(cluster["brokers"]))
    return TopicFacts(cluster_id, await _check(config, admin, is_new=is_new))


async def _create(config: RegistryConfig, admin: Any, brokers: int) -> None:
    wanted = config.get_int("kafkastore.topic.replication.factor")
    replicas = min(wanted, brokers)
    if replicas < wanted:
        telemetry.warning(
            "topic %s is created with replication factor %d instead of %d, as there are not more "
            "brokers; in production, add brokers and replicas",
            *(config.topic, replicas, wanted),
        )
    topic = NewTopic(
        config.topic,
        num_partitions=1,
        replication_factor=replicas,
        topic_configs={**config.topic_config, CLEANUP_POLICY: "compact"},
    )
    answer = await admin.create_topics([topic])
    for _, code, *message in answer.topic_errors:
        error = errors.for_code(code)
        if error is errors.NoError:
            telemetry.info("topic %s is created", config.topic)
        elif error is not errors.TopicAlreadyExistsError:  # another instance was faster
            raise error(*message)


async def _check(config: RegistryConfig, admin: Any, *, is_new: bool) -> int:
    """Raise StoreError if the topic may not be used; returns its max.message.bytes."""
    (topic,) = await admin.describe_topics([config.topic])
    error = errors.for_code(topic["error_code"])
    if error is not errors.NoError:
        raise error(config.topic)
    partitions = topic["partitions"]
    if len(partitions) != 1:
        raise StoreError(
            f"topic {config.topic} has {len(partitions)} partitions, and must have one: the order "
            "of all records matters. Name another topic with kafkastore.topic"
        )
    wanted = config.get_int("kafkastore.topic.replication.factor")
    replicas = len(partitions[0]["replicas"])
    if replicas < wanted and not is_new:
        telemetry.warning(
            "topic %s has replication factor %d, less than kafkastore.topic.replication.factor=%d",
            *(config.topic, replicas, wanted),
        )
    values = await _configuration(config.topic, admin)
    policy = values.get(CLEANUP_POLICY)
    if policy is not None and policy != "compact":
        raise StoreError(
            f"topic {config.topic} has {CLEANUP_POLICY}={policy}, and must have compact, or the "
            f"brokers delete schemas: barnabas topic alter {config.topic} -c "
            f"{CLEANUP_POLICY}=compact"
        )
    return int(values.get(MESSAGE_BYTES) or MESSAGE_BYTES_DEFAULT)


async def _configuration(topic: str, admin: Any) -> dict[str, str | None]:
    """Values by key; none where this user may not see them."""
    (answer,) = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
    values: dict[str, str | None] = {}
    for code, message, _, _, entries in answer.resources:
        error = errors.for_code(code)
        if error is errors.TopicAuthorizationFailedError:
            telemetry.warning(
                "not allowed to see the configuration of topic %s, so its %s is not checked",
                *(topic, CLEANUP_POLICY),
            )
        elif error is not errors.NoError:
            raise error(message)
        for entry in entries:
            values[entry[0]] = entry[1]
    return values
