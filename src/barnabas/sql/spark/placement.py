"""Where a query's partitions, tasks and state are: as its topics have it, and its checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.kafka.admin import Admin
from barnabas.sql.plan.steps import QueryPlan
from barnabas.sql.spark.checkpoint import Checkpoint, open_checkpoint, shape_of
from barnabas.sql.spark.hosted import HostedPlan
from barnabas.sql.spark.hosting import Hosting
from barnabas.sql.spark.options import Guarantee, SparkQueryOptions
from barnabas.sql.spark.results import METADATA_TIMEOUT_SECONDS


class MissingTopicError(Exception):
    """A topic that the query reads or writes does not exist."""


class AddedPartitionsError(Exception):
    """A topic has partitions that it did not have at the query's start."""

    def __init__(self, topic: str, count: int) -> None:
        super().__init__(f"Topic {topic} has more than {count} partitions now")


@dataclass(frozen=True)
class PlacedPlan:
    """A plan as it runs.

    `state_topics`: the partitions of topics whose keys have their state where they are.
    `counts`: the partitions of all topics that it reads.
    """

    hosted: HostedPlan
    state_topics: dict[str, int]
    counts: dict[str, int]


def partition_counts(options: SparkQueryOptions) -> dict[str, int]:
    """The partitions of each topic of the cluster. Raises KafkaException."""
    servers = {"bootstrap.servers": options.bootstrap_servers}
    return Admin({**options.clients, **servers}, METADATA_TIMEOUT_SECONDS).partition_counts()


def place_plan(plan: QueryPlan, options: SparkQueryOptions, cores: int | None) -> PlacedPlan:
    """Place a query's plan, and make its checkpoint's directory if it has none.

    `cores`: how many tasks may run at once, None where that is not known.
    Raises CheckpointError, MissingTopicError, KafkaException.
    """
    draft = HostedPlan.draft(plan, options.extension_directory)
    encoded = draft.hosting.plan
    sources = sorted(set(draft.topology.topics.values()))
    counts = partition_counts(options)
    for topic in (*sources, draft.sink.topic):
        if topic not in counts:
            raise MissingTopicError(f"Topic {topic} of query {plan.query_id} is missing")
    partitions = options.partitions or max(counts[topic] for topic in sources)
    tasks = partitions if cores is None else min(partitions, cores)
    first, *others = {counts[topic] for topic in sources}
    checkpoint = open_checkpoint(
        options.checkpoint_of(plan.query_id),
        encoded,
        partitions,
        tasks,
        shape_of(draft.topology, draft.stages),
        topic_partitions=0 if others else first,
    )
    hosting = _hosting(plan.query_id, encoded, options, checkpoint, counts[draft.sink.topic])
    hosted = draft.spread(hosting)
    state_topics = {topic: counts[topic] for topic in sorted(hosted.topics_with_state)}
    checkpoint.check_topics(state_topics)
    return PlacedPlan(hosted, state_topics, {topic: counts[topic] for topic in sources})


def _hosting(
    query_id: str,
    plan: str,
    options: SparkQueryOptions,
    checkpoint: Checkpoint,
    sink_partitions: int,
) -> Hosting:
    is_written_by_tasks = options.guarantee is Guarantee.AT_LEAST_ONCE
    return Hosting(
        query_id,
        plan,
        checkpoint.partitions,
        checkpoint.tasks,
        tuple(options.properties.items()),
        options.registry_urls,
        options.registry_user_info,
        checkpoint.is_copartitioned,
        options.emits_every_change,
        checkpoint.state_name,
        options.extension_directory,
        options.bootstrap_servers if is_written_by_tasks else None,
        sink_partitions,
        options.registry_tls,
        tuple(sorted(options.clients.items())),
    )
