"""The kinds of errors that connectors, converters and transforms raise.

Source: org.apache.kafka.connect.errors (Kafka 4.3); status shows them under those names.
"""

from __future__ import annotations

from barnabas.base.errors import ShownError


class ConnectError(ShownError):
    """A connector, task, converter or transform failed (ConnectException)."""

    java_name = "org.apache.kafka.connect.errors.ConnectException"


class DataError(ConnectError):
    """A value and a schema do not fit (DataException)."""

    java_name = "org.apache.kafka.connect.errors.DataException"


class SchemaBuilderError(DataError):
    """A schema cannot be built (SchemaBuilderException)."""

    java_name = "org.apache.kafka.connect.errors.SchemaBuilderException"


class RetriableError(ConnectError):
    """The same call may succeed later (RetriableException)."""

    java_name = "org.apache.kafka.connect.errors.RetriableException"


class ConfigError(ConnectError):
    """A setting has a value that it cannot have (ConfigException)."""

    is_wrong_usage = True
    java_name = "org.apache.kafka.common.config.ConfigException"


class SchemaProjectorError(DataError):
    """A value of one schema cannot be one of another (SchemaProjectorException)."""

    java_name = "org.apache.kafka.connect.errors.SchemaProjectorException"


class NotFoundError(ConnectError):
    """Something that was asked for is not there (NotFoundException)."""

    java_name = "org.apache.kafka.connect.errors.NotFoundException"


class IllegalArgumentError(ConnectError):
    """An error for which Java raises an IllegalArgumentException."""

    java_name = "java.lang.IllegalArgumentException"


class IndexOutOfBoundsError(ConnectError):
    """An error for which Java raises an IndexOutOfBoundsException."""

    java_name = "java.lang.IndexOutOfBoundsException"


class NullPointerError(ConnectError):
    """An error for which Java raises a NullPointerException."""

    java_name = "java.lang.NullPointerException"


class IllegalStateError(ConnectError):
    """An error for which Java raises an IllegalStateException."""

    java_name = "java.lang.IllegalStateException"


def kind_of(error: BaseException) -> type[ConnectError] | None:
    """Return which of these kinds an error is; None for another one."""
    found = (base for base in type(error).__mro__ if base.__module__ == __name__)
    return next(found, None)
