"""The demo's schema registry: one process, which keeps its schemas in the cluster."""

from __future__ import annotations

from barnabas.demo.access import Access
from barnabas.demo.broker import BARNABAS
from barnabas.demo.processes import ChildSpec
from barnabas.demo.workspace import Settings
from barnabas.schemas.errors import RegistryError
from barnabas.schemas.registry_client import RegistryClient

OVERRIDES = {
    "host.name": "127.0.0.1",
    # A write waits while a broker that was killed is replaced.
    "kafkastore.timeout.ms": "10000",
}
OVERRIDES_ELSEWHERE = {
    "kafkastore.topic": "_barnabas-demo-schemas",
    "schema.registry.group.id": "barnabas-demo-schema-registry",
}
"""On a cluster that is not the demo's it keeps away from a registry that may be there already."""


def registry_spec(
    settings: Settings, bootstrap: str, *, is_own_cluster: bool, access: Access | None = None
) -> ChildSpec:
    """Return how to start the registry."""
    command = [*BARNABAS, "registry", "start", "--bootstrap-servers", bootstrap]
    command += [] if access is None else [access.registry_file]
    command += ["--listeners", settings.registry_url]
    for key, value in (OVERRIDES | ({} if is_own_cluster else OVERRIDES_ELSEWHERE)).items():
        command += ["--override", f"{key}={value}"]
    return ChildSpec(
        "registry",
        command,
        grace_seconds=10.0,
        advice="See the log; the registry needs its topic, which the cluster may refuse.",
    )


def answers(url: str) -> bool:
    """Return whether the registry answers, asked once."""
    try:
        RegistryClient(url).subjects()
    except RegistryError:
        return False
    return True
