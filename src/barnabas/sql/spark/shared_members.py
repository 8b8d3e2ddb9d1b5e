"""The queries of a shared stream: which may take part, and what a micro-batch has for each."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from confluent_kafka import KafkaException
from pyspark.sql import SparkSession

from barnabas.kafka.admin import Listed
from barnabas.spark.pushed_rows import PushedRow, why_no_pushed_rows
from barnabas.spark.time_slices import OffsetsAfter, Source, TimeSlices
from barnabas.sql.plan.steps import QueryPlan
from barnabas.sql.spark.hosted import HostedPlan
from barnabas.sql.spark.options import SparkQueryOptions
from barnabas.sql.spark.parcels import Notes, Range, Turn, encode_parcel
from barnabas.sql.spark.placement import partition_counts
from barnabas.sql.spark.processor import why_no_shared_processor
from barnabas.sql.spark.reading import why_spark_reads
from barnabas.sql.spark.shared_ledger import Offsets, Share
from barnabas.sql.spark.topology import MEMBER_PARTITIONS_MAX, Place, member_labels

_RECORDS_MIN: Final = 50_000


def records_max(options: SparkQueryOptions, queries: int) -> int:
    """The limit of a query's records of one topic in a micro-batch that ends with its ranges.

    A query that catches up must not hold up the others.
    """
    return max(_RECORDS_MIN, options.records_per_batch_max // max(1, queries))


class Reader(Protocol):
    """A query that takes part; its methods are called by the stream's threads."""

    def took(self, batch_id: int, notes: Notes) -> None:
        """One of its partitions has done its part of a micro-batch."""
        ...

    def failed(self, error: BaseException) -> None:
        """It is left out from now on."""
        ...


@dataclass
class Participant:
    """A query as it runs in the stream. `parcel`: its description for workers.

    `places`: the inputs of its stages that read topics. `partitions`: of its state; `counts`: of
    its topics. `state_topics`: those whose keys have their state where they are. `state_name`: of
    its checkpoint.
    """

    query_id: str
    reader: Reader
    parcel: bytes
    places: Mapping[Place, str]
    sink: str
    partitions: int
    counts: dict[str, int]
    state_topics: Mapping[str, int]
    state_name: str
    first_offsets: Offsets
    """The offsets at which it begins if it is new."""
    topic_ids: Mapping[str, str]
    is_exactly_once: bool = False
    ends: dict[tuple[str, int], int] = field(default_factory=dict)
    """The ends of its topics' partitions, as last heard of."""
    slices: TimeSlices = field(default_factory=TimeSlices)


def why_alone(
    plan: QueryPlan,
    options: SparkQueryOptions,
    spark: SparkSession | None,
) -> str:
    """Return why a new query cannot share a stream; empty if it can."""
    if not options.is_shared:
        return "ksql.runtime.feature.shared.enabled is not set"
    if options.tasks_max not in (None, 1) or options.partitions is not None:
        return "the number of its tasks is set"
    reason = why_no_shared_processor()
    if reason:
        return reason
    reason = why_spark_reads(options, spark)
    if reason:
        return f"Spark's source reads its topics: {reason}"
    reason = "" if spark is None else why_no_pushed_rows(spark)
    if reason:
        return reason
    draft = HostedPlan.draft(plan, options.extension_directory)
    try:
        counts = partition_counts(options)
    except KafkaException as error:
        return f"its topics are not known: {error.args[0].str()}"
    partitions = {counts.get(topic, 1) for topic in draft.topology.topics.values()}
    count = placing(options).partitions or max(partitions)
    hosting = replace(draft.hosting, partitions=count, is_copartitioned=len(partitions) == 1)
    return why_records_move(draft.spread(hosting))


def placing(options: SparkQueryOptions) -> SparkQueryOptions:
    """How a query of a shared stream is placed: if one task does all, in one partition, so that no
    records move."""
    return replace(options, partitions=1) if options.tasks_max == 1 else options


def why_records_move(hosted: HostedPlan) -> str:
    """Return why one label cannot run all stages of a plan for its partition; empty if it can."""
    topology = hosted.topology
    if topology.partitions > MEMBER_PARTITIONS_MAX:
        return "its topics have too many partitions"
    for stage, _ in topology.topics:
        members = topology.entries.get(stage)
        if members is not None and topology.next_operator(members, hosted.stages) is None:
            continue
        if len(topology.operators) > 1 or hosted.takes_ranges(stage) is None:
            return "its records move to the partitions of other keys"
    return ""


def ranges_of(
    participant: Participant,
    share: Share,
    ends: Listed,
    count_max: int,
    offsets_after: OffsetsAfter,
    *,
    is_lasting: bool = False,
) -> Iterator[Range]:
    """The offsets that a query has not read, at most `count_max` of each topic.

    Those of several topics are a slice of time, and a partition of its state waits for all of them:
    one whose end is not known may have earlier records. A partition of its state that has to read
    some once more gets these, and all of them. If the micro-batch lasts, partitions without new
    records have empty ranges, as some may come; then offsets are no slices. Raises what
    `offsets_after` raises.
    """
    topics = sorted(set(participant.places.values()))
    again = {number: share.repeats(number) for number in share.repeating}
    waiting = {
        partition % participant.partitions
        for topic in topics
        for partition in share.offsets[topic]
        if len(topics) > 1 and (topic, partition) not in ends
    }
    sources: dict[str, Source] = {}
    for topic in topics:
        starts = {
            (topic, partition): first
            for partition, first in sorted(share.offsets[topic].items())
            if partition % participant.partitions not in again.keys() | waiting
            and (end := ends.get((topic, partition), first - 1)) >= first
            and (is_lasting or end > first)
        }
        sources[topic] = Source(starts, {place: ends[place] for place in starts}, count_max)
    if is_lasting or len(sources) == 1:
        reached = [_equal_parts(source) for source in sources.values()]
    else:
        reached = participant.slices.ends(list(sources.values()), offsets_after)
    untils = dict(zip(sources, reached, strict=True))
    for (stage, place), topic in sorted(participant.places.items()):
        for partition in sorted(share.offsets[topic]):
            repeats = again.get(partition % participant.partitions, {})
            if (topic, partition) in repeats and repeats.keys() <= ends.keys():
                yield Range(stage, place, topic, partition, *repeats[topic, partition])
        for (_, partition), first in sources[topic].starts.items():
            until = untils[topic][topic, partition]
            if is_lasting or until > first:
                yield Range(stage, place, topic, partition, first, until)


def _equal_parts(source: Source) -> Listed:
    """The ends if partitions share the limit equally."""
    part = max(1, source.limit // max(1, len(source.starts)))
    return {place: min(source.ends[place], first + part) for place, first in source.starts.items()}


def has_begun_alone(query_id: str, options: SparkQueryOptions) -> bool:
    """Return whether a query has its own checkpoint of Spark's."""
    return os.path.exists(os.path.join(options.checkpoint_of(query_id), "offsets"))


def rows_of(
    participant: Participant, share: Share, ranges: Sequence[Range], tasks: int, number: int
) -> list[PushedRow]:
    """The rows of a query's ranges, by label. `number`: of the micro-batch."""
    repeating = share.repeating
    labels = member_labels(share.number, participant.partitions, tasks)
    rows: list[PushedRow] = []
    told: set[int] = set()
    for one in ranges:
        state_partition = one.partition % participant.partitions
        label = labels[state_partition]
        if label not in told:
            told.add(label)
            rows.append((label, participant.parcel))
            is_repeated = state_partition in repeating
            if participant.is_exactly_once or is_repeated:
                rows.append((label, encode_parcel(Turn(number, is_repeated))))
        rows.append((label, encode_parcel(one)))
    return rows
