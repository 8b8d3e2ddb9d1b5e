"""What the modules of clients share."""

from collections.abc import Iterator

import java_host
import pytest


@pytest.fixture(scope="session")
def java() -> Iterator[java_host.JavaHost]:
    """A JVM with Kafka's tools; tests are skipped where it cannot be had."""
    if not java_host.AVAILABLE:
        pytest.skip(java_host.MISSING)
    with java_host.JavaHost() as host:
        yield host
