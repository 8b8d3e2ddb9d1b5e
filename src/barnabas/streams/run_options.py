"""How a pipeline is run: the options of its start."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from barnabas.base.private_files import state_directory
from barnabas.streams.environment import REGISTRY_VARIABLE, default_bootstrap
from barnabas.streams.errors import PipelineError
from barnabas.streams.names import check_duration, check_word, nearest

Guarantee = Literal["at_least_once", "exactly_once"]


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
    return os.path.join(state_directory(), "pipelines")
