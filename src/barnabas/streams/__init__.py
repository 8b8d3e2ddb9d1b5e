"""Stream processing in Python on Spark; docs/streams.md is the tutorial.

    from barnabas.streams import Pipeline, f, stream, table

A pipeline is described first and built later: streams, tables and steps are plain objects. They
become DataFrames when the pipeline starts, when a test runs it, or when `.df` is read, so
describing a pipeline imports nothing of Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.streams.avro_format import avro
    from barnabas.streams.dsl import Stream, Table, from_dataframe, stream, table
    from barnabas.streams.environment import connect
    from barnabas.streams.errors import MalformedRecordError, PipelineError
    from barnabas.streams.expressions import col, f, lit
    from barnabas.streams.formats import binary, json, string
    from barnabas.streams.pipeline import Pipeline
    from barnabas.streams.processor import Context, Processor

__all__ = [
    "Context",
    "MalformedRecordError",
    "Pipeline",
    "PipelineError",
    "Processor",
    "Stream",
    "Table",
    "avro",
    "binary",
    "col",
    "connect",
    "f",
    "from_dataframe",
    "json",
    "lit",
    "stream",
    "string",
    "table",
]

_HOMES = {
    "avro": "avro_format",
    "connect": "environment",
    "MalformedRecordError": "errors",
    "PipelineError": "errors",
    "col": "expressions",
    "f": "expressions",
    "lit": "expressions",
    "binary": "formats",
    "json": "formats",
    "string": "formats",
    "Pipeline": "pipeline",
    "Context": "processor",
    "Processor": "processor",
    "Stream": "dsl",
    "Table": "dsl",
    "from_dataframe": "dsl",
    "stream": "dsl",
    "table": "dsl",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is asked for: the other parts of the package need none of them."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
