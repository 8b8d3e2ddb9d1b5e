"""The change stream of a whole deployment, as BSON though pymongo decodes it."""

from __future__ import annotations

from typing import Any

import bson
from pymongo import MongoClient


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
        found = self._stream.try_next()
        return None if found is None else bson.raw_bson.RawBSONDocument(bson.encode(found))
