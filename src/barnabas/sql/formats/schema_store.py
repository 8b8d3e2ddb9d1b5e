"""A schema registry with Confluent's REST interface: the one module of formats that does I/O.

What an id means never changes, so schemas are kept by id, and ids by the subject and text that were
registered. The latest version of a subject is asked for each time. Several URLs are one registry:
the next is asked where one does not answer.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from barnabas.base.tls.contexts import client_context
from barnabas.base.tls.key_stores import key_of_files
from barnabas.sql.formats.format import FormatError, StoredSchema

TIMEOUT_S = 30.0
_KEPT_MAX = 10_000
"""So many schemas, and so many registrations, are kept; then the store begins anew."""
_ANSWER_BYTES_MAX = 64 * 1024 * 1024
_REFERENCES_MAX = 1_000
_MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
_NOT_FOUND = 404
_RETRIABLE = (408, 429, 500, 502, 503, 504)


@dataclass(frozen=True)
class RegistryTls:
    """How a registry's certificate is checked, and what is shown to it.

    `authorities`: certificates in PEM; None: the system's. `certificate_file`: a PEM file with a
    private key and certificates.
    """

    authorities: str | None = None
    certificate_file: str | None = None
    key_password: str = field(default="", repr=False)
    checks_names: bool = True

    def context(self) -> ssl.SSLContext:
        """The same for Python's sockets. Raises OSError, ValueError."""
        file = self.certificate_file
        own = None if file is None else key_of_files(file, password=self.key_password)
        return client_context(self.authorities, own=own, checks_names=self.checks_names)


class HttpSchemaStore:
    """The registry at `urls`; `user_info` is `name:password`, or stands in a URL.

    `authorization` gives the header of each request in their place, or raises FormatError.
    `waits` pauses after so many tries that failed but may not fail later; False says to give up.
    `normalizes` has the registry bring schemas into its normal form before it compares them.
    """

    def __init__(
        self,
        urls: Sequence[str],
        *,
        user_info: str | None = None,
        authorization: Callable[[], str] | None = None,
        headers: Mapping[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
        timeout_s: float = TIMEOUT_S,
        waits: Callable[[int], bool] = lambda failures: False,
        normalizes: bool = False,
    ) -> None:
        if not urls:
            raise ValueError("a schema registry needs a URL")
        self._bases = [_split_user(url.strip().rstrip("/"), user_info) for url in urls]
        self._authorization = authorization
        self._headers = {"Accept": _MEDIA_TYPE, **(headers or {})}
        self._tls = tls
        self._timeout_s = timeout_s
        self._waits = waits
        self._query = "?normalize=true" if normalizes else ""
        self._schemas: dict[int, StoredSchema] = {}
        self._ids: dict[tuple[str, str, str], int] = {}

    def register(self, subject: str, schema_type: str, text: str) -> int:
        """The id of the schema under the subject, registered if it is not. Raises FormatError."""
        key = (subject, schema_type, text)
        known = self._ids.get(key)
        if known is not None:
            return known
        path = f"{_path_of(subject)}/versions{self._query}"
        answer = self._ask(path, _body(schema_type, text))
        return self._keep_id(key, int(_member(answer, "id", int)))

    def find(self, subject: str, schema_type: str, text: str) -> int | None:
        """The id of the schema under the subject; None where it is not. Raises FormatError."""
        key = (subject, schema_type, text)
        known = self._ids.get(key)
        if known is not None:
            return known
        path = _path_of(subject) + self._query
        answer = self._ask(path, _body(schema_type, text), may_miss=True)
        return None if answer is None else self._keep_id(key, int(_member(answer, "id", int)))

    def _keep_id(self, key: tuple[str, str, str], schema_id: int) -> int:
        if len(self._ids) >= _KEPT_MAX:
            self._ids.clear()
        self._ids[key] = schema_id
        return schema_id

    def by_id(self, schema_id: int) -> StoredSchema:
        """The schema of that id. Raises FormatError."""
        known = self._schemas.get(schema_id)
        if known is None:
            answer = self._ask(f"/schemas/ids/{schema_id}")
            if answer is None:
                raise FormatError(f"Schema {schema_id} is not in the schema registry")
            known = self._stored(schema_id, answer)
            if len(self._schemas) >= _KEPT_MAX:
                self._schemas.clear()
            self._schemas[schema_id] = known
        return known

    def latest(self, subject: str) -> StoredSchema | None:
        """The subject's latest version; None where there is no such subject."""
        answer = self._ask(f"/subjects/{quote(subject, safe='')}/versions/latest")
        return None if answer is None else self._stored(int(_member(answer, "id", int)), answer)

    def _stored(self, schema_id: int, answer: Any) -> StoredSchema:
        found: dict[str, str] = {}
        self._collect(answer, found, set())
        text = str(_member(answer, "schema", str))
        return StoredSchema(
            schema_id, str(answer.get("schemaType") or "AVRO"), text, tuple(found.items())
        )

    def _collect(self, answer: Any, found: dict[str, str], seen: set[tuple[str, int]]) -> None:
        """Put what the schema refers to into `found`, each after what it refers to itself."""
        for reference in answer.get("references") or ():
            name = str(_member(reference, "name", str))
            subject = str(_member(reference, "subject", str))
            version = int(_member(reference, "version", int))
            if (subject, version) in seen:
                continue
            seen.add((subject, version))
            if len(seen) > _REFERENCES_MAX:
                raise FormatError("The schema refers to too many others")
            path = f"/subjects/{quote(subject, safe='')}/versions/{version}"
            inner = self._ask(f"{path}?deleted=true")
            if inner is None:
                raise FormatError(f"Version {version} of {subject} is not in the schema registry")
            self._collect(inner, found, seen)
            found[name] = str(_member(inner, "schema", str))

    def _ask(self, path: str, body: Any = None, *, may_miss: bool = False) -> Any:
        """The decoded answer; None for what is not there. Raises FormatError."""
        failures = 0
        while True:
            failure = FormatError("The schema registry was not asked")
            for base, user in self._bases:
                try:
                    authorization = self._authorization() if self._authorization else user
                    return self._ask_one(
                        base + path, authorization, body, may_miss=may_miss or body is None
                    )
                except FormatError as error:
                    if not error.retriable:
                        raise
                    failure = error
            failures += 1
            if not self._waits(failures):
                raise failure

    def _ask_one(self, url: str, authorization: str | None, body: Any, *, may_miss: bool) -> Any:
        request = urllib.request.Request(url, headers=self._headers)
        if authorization:
            request.add_header("Authorization", authorization)
        if body is not None:
            request.add_header("Content-Type", _MEDIA_TYPE)
            request.data = json.dumps(body).encode()
        try:
            with urllib.request.urlopen(
                request, timeout=self._timeout_s, context=self._tls
            ) as response:
                return json.loads(response.read(_ANSWER_BYTES_MAX))
        except urllib.error.HTTPError as error:
            with error:
                if error.code == _NOT_FOUND and may_miss:
                    return None
                reason = error.read(_ANSWER_BYTES_MAX).decode("utf-8", "replace")
            raise FormatError(
                f"The schema registry answers {error.code}: {_message(reason)}",
                retriable=error.code in _RETRIABLE,
            ) from error
        except (OSError, http.client.HTTPException) as error:
            raise FormatError(
                f"The schema registry does not answer: {error}", retriable=True
            ) from error
        except ValueError as error:
            raise FormatError("The schema registry's answer is not JSON") from error


def _path_of(subject: str) -> str:
    return f"/subjects/{quote(subject, safe='')}"


def _body(schema_type: str, text: str) -> dict[str, str]:
    return {"schema": text} | ({} if schema_type == "AVRO" else {"schemaType": schema_type})


def _split_user(url: str, user_info: str | None) -> tuple[str, str | None]:
    """The URL without its user, and the header that names them."""
    parts = urlsplit(url)
    own, at, host = parts.netloc.rpartition("@")
    if at:
        url = urlunsplit(parts._replace(netloc=host))
    user = own or user_info
    return url, f"Basic {base64.b64encode(user.encode()).decode()}" if user else None


def _member(answer: Any, name: str, kind: type) -> Any:
    value = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(value, kind):
        raise FormatError(f"The schema registry's answer has no '{name}'")
    return value


def _message(body: str) -> str:
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return body[:200]
