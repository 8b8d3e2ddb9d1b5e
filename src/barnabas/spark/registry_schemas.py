"""Asking a schema registry: what schemas records were written with, and are to be.

It asks through the REST interface that every registry has, with nothing but the standard library,
and remembers what cannot change: the text of an id.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from http.client import HTTPException
from typing import Any, Final

MAGIC: Final = 0
"""The first byte of a value in the registry's framing; the schema's id follows, 4 bytes."""
FRAME_BYTES: Final = 5
_TIMEOUT_SECONDS: Final = 10.0
_NOT_FOUND: Final = 404
_CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"


class RegistryUnavailableError(Exception):
    """The registry does not answer, or answers with an error; the message says which."""


class RegistrySchemas:
    """The schemas of one registry. `url` may hold a path, but no user or password."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._texts: dict[int, str] = {}
        self._versions: dict[tuple[str, int], dict[str, Any]] = {}
        self._ids: dict[tuple[str, str], int] = {}

    def subjects(self) -> list[str]:
        """Return all subjects. Raises RegistryUnavailableError."""
        return list(self._get("/subjects") or [])

    def versions(self, subject: str) -> list[dict[str, Any]]:
        """Return a subject's versions as the registry tells them, ascending; none if it is absent.

        Raises RegistryUnavailableError.
        """
        path = f"/subjects/{urllib.parse.quote(subject, safe='')}/versions"
        found = []
        for version in self._get(path) or []:
            if (subject, version) not in self._versions:
                told = self._get(f"{path}/{version}")
                if told is None:
                    continue  # deleted meanwhile
                self._versions[subject, version] = told
            found.append(self._versions[subject, version])
        return found

    def avro_of(self, schema_id: int) -> str | None:
        """Return an Avro schema with what it refers to in its text; None if there is none.

        Raises RegistryUnavailableError.
        """
        if schema_id not in self._texts:
            told = self._get(f"/schemas/ids/{schema_id}?format=resolved")
            if told is None or told.get("schemaType", "AVRO") != "AVRO":
                return None
            self._texts[schema_id] = told["schema"]
        return self._texts[schema_id]

    def avro_of_subject(self, subject: str) -> dict[int, str]:
        """Return the Avro schemas of a subject's versions, by id.

        Raises RegistryUnavailableError.
        """
        ids = [version["id"] for version in self.versions(subject)]
        texts = {schema_id: self.avro_of(schema_id) for schema_id in ids}
        return {schema_id: text for schema_id, text in texts.items() if text is not None}

    def register(self, subject: str, schema: str) -> int:
        """Register an Avro schema, or find it; returns its id.

        Raises RegistryUnavailableError, also where the registry refuses it.
        """
        key = (subject, schema)
        if key not in self._ids:
            path = f"/subjects/{urllib.parse.quote(subject, safe='')}/versions"
            told = self._ask(path, json.dumps({"schema": schema}).encode())
            if told is None:
                raise RegistryUnavailableError(f"{self.url} does not know {path}")
            self._ids[key] = told["id"]
        return self._ids[key]

    def _get(self, path: str) -> Any:
        return self._ask(path)

    def _ask(self, path: str, content: bytes | None = None) -> Any:
        """Return what the registry answers; None if it knows no such thing."""
        headers = {} if content is None else {"Content-Type": _CONTENT_TYPE}
        request = urllib.request.Request(f"{self.url}{path}", content, headers)
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                if error.code == _NOT_FOUND:
                    return None
                raise RegistryUnavailableError(
                    f"{self.url}{path} answers {error.code}: {error.read(300)!r}"
                ) from error
        except (OSError, HTTPException, ValueError) as error:
            raise RegistryUnavailableError(f"{self.url} does not answer: {error}") from error


def frame(schema_id: int) -> bytes:
    """Return what stands before the value of a record written with a schema."""
    return bytes([MAGIC]) + schema_id.to_bytes(FRAME_BYTES - 1, "big")


def schema_id_of(value: bytes) -> int | None:
    """Return the id of the schema that a value was written with; None if it is not framed."""
    if len(value) < FRAME_BYTES or value[0] != MAGIC:
        return None
    return int.from_bytes(value[1:FRAME_BYTES], "big")
