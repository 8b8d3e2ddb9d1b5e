"""Fixtures of the tests of converters."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.connect.registry import registry_over_http


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The address of a registry for this module only."""
    with registry_over_http() as url:
        yield url
