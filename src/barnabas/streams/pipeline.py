"""A pipeline: topics that are written, of what is read; and how it is started."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from barnabas.streams.environment import FIRST_START
from barnabas.streams.errors import PipelineError
from barnabas.streams.names import check_topic
from barnabas.streams.outputs import Output, sources_of
from barnabas.streams.run_options import RunOptions
from barnabas.streams.sources import Source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from barnabas.streams.running import RunningPipeline

_BY_NAME: Final = "by name"


class Pipeline:
    """One or several outputs under a name; one Spark query for each.

    `name` names its checkpoints, so it stays when the pipeline is started again. Malformed records
    go to the topic `dead_letters`, `<name>-dead-letters` by default; None: they stop the pipeline.
    """

    def __init__(self, name: str, *outputs: Output, dead_letters: str | None = _BY_NAME) -> None:
        if not re.fullmatch(r"[A-Za-z0-9._-]+", name) or name in (".", ".."):
            raise PipelineError(f"a pipeline's name has letters, digits, '.', '_', '-': {name!r}")
        self.name = name
        self.outputs = tuple(_with_feeders(outputs))
        if not self.outputs:
            raise PipelineError(f"the pipeline {name} writes nothing: end a stream with .to(topic)")
        for output in self.outputs:
            output.check()
        topics = [output.topic for output in self.outputs]
        twice = sorted({topic for topic in topics if topics.count(topic) > 1})
        if twice:
            raise PipelineError(
                f"the pipeline {name} writes {', '.join(twice)} twice: put them together by union()"
            )
        self.dead_letters = f"{name}-dead-letters" if dead_letters == _BY_NAME else dead_letters
        if self.dead_letters is not None:
            check_topic(self.dead_letters)
        if self.dead_letters in {*topics, *(source.topic for source in self.sources())}:
            raise PipelineError(
                f"the pipeline {name} reads or writes {self.dead_letters} already: name another "
                "topic for dead_letters"
            )
        if FIRST_START in topics:
            raise PipelineError(f"{FIRST_START} cannot be written: checkpoints have that name")

    def sources(self) -> list[Source]:
        """Return the topics that are read, each once."""
        return sources_of(self.outputs)

    def start(
        self,
        bootstrap_servers: str | None = None,
        schema_registry_url: str | None = None,
        *,
        spark: SparkSession | None = None,
        **options: Any,
    ) -> RunningPipeline:
        """Start, or go on from the checkpoints; `options` are fields of `RunOptions`.

        Without `spark` the session of this process runs it; one is started if none exists.
        Raises PipelineError for what cannot be built or reached.
        """
        from barnabas.streams.running import start_pipeline

        chosen = RunOptions.of(bootstrap_servers, schema_registry_url, options)
        return start_pipeline(self.name, self.outputs, self.dead_letters, chosen, spark)

    def run(
        self,
        bootstrap_servers: str | None = None,
        schema_registry_url: str | None = None,
        *,
        spark: SparkSession | None = None,
        **options: Any,
    ) -> None:
        """Start, and return when it has stopped: by SIGTERM or Ctrl-C, or at the end.

        A signal lets the micro-batch end that runs. Raises PipelineError if it failed.
        """
        from barnabas.streams.running import run_until_signal

        run_until_signal(self.start(bootstrap_servers, schema_registry_url, spark=spark, **options))


def as_pipeline(pipeline: Any, name: str) -> Pipeline:
    """Return a pipeline as it is, and an output as one of this name."""
    if isinstance(pipeline, Pipeline):
        return pipeline
    if isinstance(pipeline, Output):
        return Pipeline(name, pipeline)
    raise PipelineError(f"{name} is not a pipeline but {type(pipeline).__name__}")


def _with_feeders(outputs: tuple[Output, ...]) -> Iterator[Output]:
    """The outputs, each after those that write what it reads on from."""
    seen: set[int] = set()

    def visit(output: Output) -> Iterator[Output]:
        if id(output) in seen:
            return
        seen.add(id(output))
        for feeder in output.feeders():
            yield from visit(feeder)
        yield output

    for output in outputs:
        yield from visit(output)


DEFAULT_NAME = "pipeline"


def load_pipeline(named: str) -> Pipeline:
    """Return the pipeline that a file or module has under a name.

    Raises PipelineError if none exists; what the module itself raises comes through.
    """
    place, _, name = named.partition(":")
    module = _from_file(place) if place.endswith(".py") else _from_module(place)
    try:
        pipeline = getattr(module, name or DEFAULT_NAME)
    except AttributeError:
        raise PipelineError(f"{place} has nothing named {name or DEFAULT_NAME}") from None
    return as_pipeline(pipeline, module.__name__.rpartition(".")[2])


def _from_file(path: str) -> ModuleType:
    if not os.path.exists(path):
        raise PipelineError(f"there is no file {path}")
    name = os.path.splitext(os.path.basename(path))[0]
    specification = importlib.util.spec_from_file_location(name, path)
    assert specification is not None
    assert specification.loader is not None
    # Modules beside it can be imported, as when Python runs the file itself.
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return module


def _from_module(name: str) -> ModuleType:
    sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):
            raise
        raise PipelineError(f"there is no module {name}") from error
    return module
