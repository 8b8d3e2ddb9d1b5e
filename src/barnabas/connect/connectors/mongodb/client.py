"""Clients of MongoDB, and which of their errors may pass by themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import bson
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.raw_bson import RawBSONDocument
from pymongo import MongoClient
from pymongo.errors import (
    AutoReconnect,
    ConfigurationError,
    ConnectionFailure,
    InvalidURI,
    OperationFailure,
    PyMongoError,
    WTimeoutError,
)
from pymongo.server_api import ServerApi

from barnabas.connect.connectors.mongodb.settings import secret
from barnabas.schemas.data.errors import ConfigError, ConnectError, RetriableError

RAW: CodecOptions[RawBSONDocument] = CodecOptions(
    document_class=RawBSONDocument, datetime_conversion=DatetimeConversion.DATETIME_AUTO
)
"""Documents as they are; moments after the year 9999 are numbers."""
SELECTION_MS = 10_000
_AUTHENTICATION = (18, 8000)


def make_client(values: Mapping[str, Any]) -> MongoClient[Any]:
    """A client by parsed settings; it connects when it is used. Raises ConfigError."""
    more: dict[str, Any] = {}
    if values["server.api.version"]:
        more["server_api"] = ServerApi(
            str(values["server.api.version"]),
            strict=values["server.api.strict"],
            deprecation_errors=values["server.api.deprecation.errors"],
        )
    try:
        return MongoClient(
            secret(values["connection.uri"]),
            connect=False,
            tz_aware=True,
            serverselectiontimeoutms=SELECTION_MS,
            appname="barnabas-connect",
            **more,
        )
    except (InvalidURI, ConfigurationError, ValueError) as error:
        # The text may have the password.
        raise ConfigError(
            "Invalid value [hidden] for configuration connection.uri: it is not a connection string"
        ) from error


@contextmanager
def told(what: str) -> Iterator[None]:
    """Raises RetriableError for what may pass, and ConnectError for other errors of MongoDB."""
    try:
        yield
    except (AutoReconnect, ConnectionFailure, WTimeoutError) as error:
        raise RetriableError(f"{what}: {error}") from error
    except OperationFailure as error:
        if error.has_error_label("RetryableWriteError") and error.code not in _AUTHENTICATION:
            raise RetriableError(f"{what}: {error}") from error
        raise ConnectError(f"{what}: {error}") from error
    except PyMongoError as error:
        raise ConnectError(f"{what}: {error}") from error


# The change stream of a whole deployment, as BSON though pymongo decodes it.


class AllDatabases:
    """Watches a whole deployment; pymongo decodes the changes of a client's stream."""

    def __init__(self, client: MongoClient[Any]) -> None:
        self._client = client

    def watch(self, pipeline: Any, **options: Any) -> Any:
        """Open the stream."""
        return _Encoded(self._client.watch(pipeline, **options))


class _Encoded:
    """A stream whose changes are encoded again."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def try_next(self) -> Any:
        """The next change, if there is one."""
        change = self._stream.try_next()
        return None if change is None else bson.raw_bson.RawBSONDocument(bson.encode(change))
