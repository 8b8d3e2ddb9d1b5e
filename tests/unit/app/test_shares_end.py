"""Closing the parts for share groups: a failure of one does not keep the others open."""

from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.app.coordinators import Shares


async def test_a_part_that_cannot_be_closed_keeps_no_other_open() -> None:
    closed: list[str] = []

    def part(name: str) -> Any:
        async def close() -> None:
            closed.append(name)
            if name == "persister":
                raise OSError(name)

        return SimpleNamespace(close=close)

    shares = Shares(part("coordinator"), part("persister"), part("groups"), part("ends"))
    with pytest.raises(OSError, match="persister"):
        await shares.close()
    assert closed == ["ends", "persister", "groups", "coordinator"]
