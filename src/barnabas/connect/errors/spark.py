"""Spark's errors as text for people, without Java's stack traces."""

from __future__ import annotations


def spark_errors() -> tuple[type[Exception], ...]:
    """Return the kinds of errors that calls of Spark raise."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types
    from pyspark.errors import PySparkException

    return PySparkException, Py4JError


def spark_failure(what: str, error: Exception) -> str:
    """Return what could not be done, and the first line of why."""
    # Of errors that PySpark does not know, the first line says only that Java was called.
    java = getattr(error, "java_exception", None)
    text = str(error if java is None else java.toString()).strip().splitlines()
    return f"{what}: {text[0] if text else repr(error)}"


def is_lasting(error: Exception) -> bool:
    """Return whether to try again is in vain: what is asked of Spark is wrong, or a value is."""
    from pyspark.errors import AnalysisException, IllegalArgumentException, PySparkTypeError

    if isinstance(error, AnalysisException | IllegalArgumentException | PySparkTypeError):
        return True
    return "[DATA_SOURCE_NOT_FOUND]" in str(error)
