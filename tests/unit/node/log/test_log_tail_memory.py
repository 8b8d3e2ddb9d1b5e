"""What a tail holds is what it counts: small batches cost more than their bytes."""

import tracemalloc

from barnabas.node.log.tail_cache import TailBudget, TailCache

FRAME_OVERHEAD_BYTES = 250


def test_small_batches_stay_within_the_budget() -> None:
    budget = TailBudget(total_bytes_max=1 << 20, log_bytes_max=1 << 20)
    tail = TailCache(budget, 0)
    tracemalloc.start()
    try:
        for offset in range(20_000):
            frame = bytearray(70 + FRAME_OVERHEAD_BYTES)
            tail.append(memoryview(frame)[FRAME_OVERHEAD_BYTES:], offset + 1)
        held_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert budget.used_bytes <= budget.total_bytes_max
    assert held_bytes <= 1.2 * budget.total_bytes_max
    parts, size, next_offset = tail.read(19_999, 1 << 20, 20_000, True)
    assert (len(parts), size, next_offset) == (1, 70, 20_000)
