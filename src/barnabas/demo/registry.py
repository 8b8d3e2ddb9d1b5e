"""The demo's schema registry: one process, which keeps its schemas in the cluster."""

from __future__ import annotations

import os
import sys

from barnabas.demo.processes import ChildSpec
from barnabas.demo.workspace import Settings, Workspace
from barnabas.pipeline.registry_schemas import RegistrySchemas, RegistryUnavailableError

PROPERTIES = """\
# Written by `barnabas demo`; the port changes where others took it.
listeners=http://127.0.0.1:{port}
host.name=127.0.0.1
kafkastore.bootstrap.servers={bootstrap}
kafkastore.topic={topic}
schema.registry.group.id={group}
# A write waits while a broker that was killed is replaced.
kafkastore.timeout.ms=10000
"""


def prepare(
    workspace: Workspace, settings: Settings, bootstrap: str, *, is_own_cluster: bool
) -> ChildSpec:
    """Write schema-registry.properties and return how to start the registry.

    On a cluster that is not the demo's it keeps away from a registry that may be there already.
    """
    directory = workspace.path("registry")
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, "schema-registry.properties")
    text = PROPERTIES.format(
        port=settings.registry_port,
        bootstrap=bootstrap,
        topic="_schemas" if is_own_cluster else "_barnabas-demo-schemas",
        group="schema-registry" if is_own_cluster else "barnabas-demo-schema-registry",
    )
    with open(f"{path}.new", "w", encoding="utf-8") as out:
        out.write(text)
    os.replace(f"{path}.new", path)
    return ChildSpec(
        "registry",
        [sys.executable, "-m", "barnabas.demo.registry_server", path],
        grace_seconds=10.0,
        advice="See the log; the registry needs its topic, which the cluster may refuse.",
    )


def answers(url: str) -> bool:
    """Whether the registry answers, asked once."""
    try:
        RegistrySchemas(url).subjects()
    except RegistryUnavailableError:
        return False
    return True
