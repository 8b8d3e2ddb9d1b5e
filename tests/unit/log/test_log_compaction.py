"""What compaction keeps, and how it writes it."""

import pytest

from barnabas.protocol.records.batch import Codec
from support.compaction import CompactionBench, compact_config


@pytest.mark.parametrize("codec", list(Codec))
def test_the_latest_record_of_each_key_stays(codec: Codec) -> None:
    bench = CompactionBench()
    for number in range(60):
        bench.put(*((f"key-{index}", f"{number}.{index}" * 5) for index in range(4)), codec=codec)
    ends = bench.log.log_end_offset
    bench.seal()
    assert bench.compact() >= 1
    assert bench.log.log_end_offset == ends
    assert bench.pairs() == [(236 + index, f"key-{index}", f"59.{index}" * 5) for index in range(4)]
    assert bench.log.cleaned_offset == ends
    assert not [name for name in bench.names() if name.endswith((".cleaned", ".swap"))]
