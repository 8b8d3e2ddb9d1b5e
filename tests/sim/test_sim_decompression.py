"""Clusters that decompress every compressed batch in steps, as others do with large ones."""

from typing import Any

import pytest

from barnabas.node.broker.produce.decompression import Decompression
from sim.workloads import run
from support.effort import examples

CHECK = Decompression.check


@pytest.mark.parametrize("topology", ["one", ""], ids=["single nodes", "clusters"])
def test_batches_that_wait_come_to_a_good_end(
    topology: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited = 0

    async def check(self: Decompression, *args: Any) -> Any:
        nonlocal waited
        waited += 1
        return await CHECK(self, *args)

    monkeypatch.setattr(Decompression, "check_at_once", lambda self, *args: False)
    monkeypatch.setattr(Decompression, "check", check)
    anomalies = [
        anomaly for seed in range(examples(2)) for anomaly in run(seed, topology).anomalies
    ]
    assert not anomalies
    assert waited > 0
