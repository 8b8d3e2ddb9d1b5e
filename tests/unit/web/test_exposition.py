"""Many samples become Prometheus' text, family by family."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from barnabas.web.metrics import PART_LINES, Exposition, Family, labels_text

FAMILIES = {
    "a_total": Family("a_total", "counter", ("topic",), 'What is "counted".\nTwice.'),
    "b": Family("b", "summary", ("quantile",), "A summary."),
    "c": Family("c", "gauge", (), "Many."),
}


def test_samples_of_a_family_stand_together_in_the_order_of_the_families() -> None:
    text = Exposition(FAMILIES)
    text.add("b", 0.5, quantile="0.50")
    text.add("a_total", 3, topic='x"\\\n')
    text.add("b", 7, "_count")
    text.add("a_total", 4)
    assert b"".join(text.parts()).decode().splitlines() == [
        r'# HELP a_total What is "counted".\nTwice.',
        "# TYPE a_total counter",
        r'a_total{topic="x\"\\\n"} 3',
        "a_total 4",
        "# HELP b A summary.",
        "# TYPE b summary",
        'b{quantile="0.50"} 0.5',
        "b_count 7",
    ]
    (counter, _) = text_string_to_metric_families(b"".join(text.parts()).decode())
    assert counter.samples[0].labels == {"topic": 'x"\\\n'}


def test_much_text_comes_in_parts() -> None:
    text = Exposition(FAMILIES)
    count = 3 * PART_LINES + 1
    labels = [labels_text({"n": str(number)}) for number in range(count)]
    text.column("c", labels, range(count))
    parts = list(text.parts())
    assert max(part.count(b"\n") for part in parts) <= PART_LINES + 2
    assert b"".join(parts).count(b"\nc{") == count


def test_what_is_not_documented_is_not_shown() -> None:
    with pytest.raises(AssertionError, match="is not documented"):
        Exposition(FAMILIES).add("d", 1)
