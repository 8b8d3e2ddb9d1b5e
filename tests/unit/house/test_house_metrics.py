"""docs/metrics.md is made of the catalog of metrics."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from barnabas.app.metrics.catalog import FAMILIES, GROUPS

ROOT = Path(__file__).parents[3]
NAME = re.compile(r"[a-z][a-z0-9_]*")


def test_the_table_of_metrics_is_up_to_date() -> None:
    path = ROOT / "tools" / "metrics_docs.py"
    spec = importlib.util.spec_from_file_location("metrics_docs", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert written == module.document(), "run python tools/metrics_docs.py"


def test_families_have_names_of_prometheus_and_a_meaning() -> None:
    listed = [family.name for families in GROUPS.values() for family in families]
    assert len(listed) == len(FAMILIES), "a family is listed twice"
    for family in FAMILIES.values():
        assert NAME.fullmatch(family.name)
        assert family.what.endswith("."), family.name
        is_counter = family.name.endswith(("_total", "_count")) and family.kind == "counter"
        assert is_counter == (family.kind == "counter"), family.name
