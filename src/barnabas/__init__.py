"""Barnabas: an event streaming platform that speaks Apache Kafka's wire protocol.

PYTEST_DONT_REWRITE: see barnabas.app.pytest_plugin.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.app.cluster import Cluster

__version__ = "0.1.0"
__all__ = ["Cluster", "__version__"]


def __getattr__(name: str) -> Any:
    """Import `Cluster` when it is first used: pytest loads this package at every start."""
    if name == "Cluster":
        from barnabas.app.cluster import Cluster

        return Cluster
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
