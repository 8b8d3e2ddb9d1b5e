"""Dead letters: records that cannot be read, in a topic of their own.

A record there is the record as it was, with the headers that Kafka Connect's dead letter queues
have: where it lay and what was wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Final

from barnabas.streams.steps import Building

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from barnabas.streams.sources import Source
    from barnabas.streams.steps import Environment

PREFIX: Final = "__connect.errors."
EXCEPTION: Final = "barnabas.streams.MalformedRecordError"


def dead_letters(sources: Sequence[Source], environment: Environment, pipeline: str) -> DataFrame:
    """Stream what none of the sources can read: `key`, `value`, `timestamp`, `headers`."""
    building = Building(environment)
    each: list[Source] = []
    for source in sources:
        if not any(source.reads_like(other) for other in each):
            each.append(source)
    frames = [_letters(source, building, pipeline) for source in each]
    return reduce(lambda one, other: one.unionByName(other), frames)


def _letters(source: Source, building: Building, pipeline: str) -> DataFrame:
    from pyspark.sql import functions as f

    malformed = source.malformed(building)
    part = f.when(f.col("stage") == "KEY_CONVERTER", type(source.key_format).__name__)
    values = {
        "topic": f.col("topic"),
        "partition": f.col("partition"),
        "offset": f.col("offset"),
        "connector.name": f.lit(pipeline),
        "task.id": f.lit("0"),
        "stage": f.col("stage"),
        "class.name": part.otherwise(type(source.value_format).__name__),
        "exception.class.name": f.lit(EXCEPTION),
        "exception.message": f.col("problem"),
        "exception.stacktrace": f.lit(""),
    }
    headers = f.array(*(_header(f"{PREFIX}{name}", value) for name, value in values.items()))
    own = f.coalesce(f.col("headers"), f.array().cast("array<struct<key:string,value:binary>>"))
    return malformed.select("key", "value", "timestamp", f.concat(own, headers).alias("headers"))


def _header(name: str, value: Column) -> Column:
    from pyspark.sql import functions as f

    return f.struct(
        f.lit(name).alias("key"), f.encode(value.cast("string"), "UTF-8").alias("value")
    )
