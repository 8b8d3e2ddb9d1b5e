"""A pipeline: topics that are written, of what is read; and how it is started."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Literal

from barnabas.streams.environment import FIRST_START
from barnabas.streams.errors import PipelineError
from barnabas.streams.outputs import Output
from barnabas.streams.sources import Source
from barnabas.streams.texts import check_duration, check_topic, check_word, nearest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from barnabas.streams.running import RunningPipeline

Guarantee = Literal["at_least_once", "exactly_once"]
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
        sources: dict[int, Source] = {}
        for output in self.outputs:
            for step in output.step.walk():
                if isinstance(step, Source):
                    sources[id(step)] = step
        return list(sources.values())

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

        return start_pipeline(
            self, RunOptions.of(bootstrap_servers, schema_registry_url, options), spark
        )

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


@dataclass(frozen=True)
class RunOptions:
    """The options of a pipeline's run.

    `guarantee`: exactly once writes each micro-batch in a transaction; readers want
    `isolation.level=read_committed`. `checkpoints`: the directory under which each pipeline has its
    own. `trigger`: how long at least from one micro-batch to the next. With `until_caught_up` all
    that is there is processed, and the pipeline ends. `records_per_batch_max`: per source; None for
    no bound. `client`: settings of Kafka's clients (`security.protocol`, …).
    `restarts_max`: so often in a row a query is started again that fails without a result.
    `metrics_listener`: where /metrics and /health are shown, as http://127.0.0.1:9405; empty: they
    are not.
    """

    bootstrap_servers: str
    schema_registry_url: str | None = None
    guarantee: Guarantee = "at_least_once"
    checkpoints: str = ""
    trigger: str = "0 seconds"
    until_caught_up: bool = False
    records_per_batch_max: int | None = None
    restarts_max: int = 5
    metrics_listener: str = ""
    client: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        bootstrap_servers: str | None,
        schema_registry_url: str | None,
        options: Mapping[str, Any],
    ) -> RunOptions:
        """Return options with what is not said taken from the environment variables."""
        from barnabas.streams.environment import REGISTRY_VARIABLE, default_bootstrap

        unknown = sorted(set(options) - set(cls.__dataclass_fields__))
        if unknown:
            hint = nearest(unknown[0], list(cls.__dataclass_fields__))
            raise PipelineError(f"no such option: {', '.join(unknown)}{hint}")
        made = cls(
            bootstrap_servers or default_bootstrap(),
            schema_registry_url or os.environ.get(REGISTRY_VARIABLE),
            **options,
        )
        check_word("guarantee", made.guarantee, ("at_least_once", "exactly_once"))
        check_duration("trigger", made.trigger)
        return made

    def directory(self, pipeline: str) -> str:
        """Return where a pipeline keeps its checkpoints."""
        return os.path.join(os.path.abspath(self.checkpoints or default_checkpoints()), pipeline)


def default_checkpoints() -> str:
    """Return where checkpoints are kept: under the user's state directory."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(
        os.path.expanduser("~"), ".local", "state"
    )
    return os.path.join(state, "barnabas", "pipelines")


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
        for step in output.step.walk():
            for feeder in step.feeders:
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
