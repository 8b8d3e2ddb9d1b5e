"""The code of docs/streams.md, as a reader would type it."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

from barnabas.streams.testing import PipelineTest

pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.slow,
    pytest.mark.timeout(300),
]
BLOCKS: Final = re.findall(
    r"```python\n(.*?)```",
    (Path(__file__).parents[3] / "docs/streams.md").read_text(),
    re.DOTALL,
)


def run(code: str, name: str) -> dict[str, Any]:
    """Run a block as the file that a reader would save it in."""
    module = types.ModuleType(name)
    module.__file__ = f"/nowhere/{name}.py"
    sys.modules[name] = module
    exec(compile(code, f"{name}.py", "exec", dont_inherit=True), module.__dict__)
    return module.__dict__


def block(sign: str) -> str:
    (found,) = (code for code in BLOCKS if sign in code)
    return str(found)


def test_the_tutorial_works(spark: SparkSession) -> None:
    run(block('stream(\n    "user-activity"'), "clicks")
    run(block("def test_clicks"), "clicks_test")["test_clicks_are_counted_by_minute"]()
    energy = run(block("stations = table("), "energy")
    test = block('test.pipe("stations"')
    exec(test, {"PipelineTest": PipelineTest, "pipeline": energy["pipeline"]})


def test_the_processor_of_the_tutorial(spark: SparkSession) -> None:
    charges = run(block("class Charges"), "charges_of_docs")
    with PipelineTest(charges["pipeline"], spark=spark) as test:
        test.pipe("readings", {"station": "s1", "kwh": 1.5}, at=0)
        test.pipe("readings", {"station": "s1", "kwh": 2.5}, at=60)
        test.advance("10 minutes")
        (ended,) = test.read("charges")
    assert (ended.key, ended.value["kwh"]) == ("s1", 4.0)
