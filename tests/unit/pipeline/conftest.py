"""What the pipeline's tests share."""

import gc
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from support.spark import shared_session


@pytest.fixture
def spark() -> Iterator[SparkSession]:
    """The process's Spark session."""
    yield shared_session()
    # PySpark leaves the sockets of collect() to the garbage collector: let it find them here,
    # where the module's filter stands.
    gc.collect()
