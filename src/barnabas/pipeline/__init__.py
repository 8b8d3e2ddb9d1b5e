"""Stream processing on Spark: the interface in Python. docs/streams.md is its tutorial.

    from barnabas.pipeline import Pipeline, f, stream, table

Nothing of Spark is imported before a pipeline is built.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.pipeline.streams.avro_format import avro
    from barnabas.pipeline.streams.environment import connect
    from barnabas.pipeline.streams.errors import MalformedRecordError, PipelineError
    from barnabas.pipeline.streams.expressions import col, f, lit
    from barnabas.pipeline.streams.formats import binary, json, string
    from barnabas.pipeline.streams.pipeline import Pipeline
    from barnabas.pipeline.streams.processor import Context, Processor
    from barnabas.pipeline.streams.stream import Stream, Table, from_dataframe, stream, table

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
    "Stream": "stream",
    "Table": "stream",
    "from_dataframe": "stream",
    "stream": "stream",
    "table": "stream",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is asked for: the other parts of the package need none of them."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.streams.{_HOMES[name]}"), name)
