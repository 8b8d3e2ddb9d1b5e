"""A client of a schema registry with Confluent's REST interface.

An id always means the same schema, so the client caches schemas by id, and ids by the subject and
text that were registered. It asks for a subject's latest version each time, and for others again
after a minute: a version that was deleted for good may come back as another schema. Several URLs
are one registry: the client asks the next one where one does not answer.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar
from urllib.parse import quote
from uuid import UUID

from barnabas.base.rest import ask, basic_login, split_user
from barnabas.base.tls.contexts import client_context
from barnabas.base.tls.key_stores import KeyPair
from barnabas.schemas.errors import RegistryError

TIMEOUT_S = 30.0
_KEPT_MAX = 10_000
"""The size of each cache; a full one is emptied."""
_VERSION_KEPT_S = 60.0
_REFERENCES_MAX = 1_000
_MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
_NOT_DONE, _NOT_FOUND = 300, 404
_K = TypeVar("_K")
_V = TypeVar("_V")
_RETRIABLE = (408, 429, 500, 502, 503, 504)


class StoredSchema(NamedTuple):
    """A schema as a registry holds it.

    `type` is AVRO, JSON or PROTOBUF. `references`: (name, text) of all schemas that the text needs,
    each after those it needs itself.
    """

    id: int
    type: str
    text: str
    references: tuple[tuple[str, str], ...] = ()


class SchemaStore(Protocol):
    """A schema registry, as formats need it. Methods raise RegistryError."""

    def register(self, subject: str, schema_type: str, text: str) -> int:
        """The id of the schema under the subject, registered if it is not."""
        ...

    def by_id(self, schema_id: int) -> StoredSchema:
        """The schema of that id. Raises RegistryError for an unknown one."""
        ...

    def latest(self, subject: str) -> StoredSchema | None:
        """The subject's latest version; None where the registry has no such subject."""
        ...


@dataclass(frozen=True)
class RegistryTls:
    """The authorities that a registry's certificate is checked with, and the certificate shown to
    it.

    `authorities`: certificates in PEM; None: the system's.
    """

    authorities: str | None = None
    own: KeyPair | None = None
    checks_names: bool = True

    def context(self) -> ssl.SSLContext:
        """The same for Python's sockets. Raises OSError, ValueError."""
        return client_context(self.authorities, own=self.own, checks_names=self.checks_names)


class RegistryClient:
    """A client of the registry at `urls`, a list or a text with commas.

    `user_info` is `name:password`; a URL may contain its own.

    `authorization` returns the header of each request in their place, or raises RegistryError.
    `waits` pauses after a number of failed tries that may succeed later; False means give up.
    `normalizes`: the registry compares schemas in their normal form. `follows`: redirections of the
    registry are followed.
    """

    def __init__(
        self,
        urls: str | Sequence[str],
        *,
        user_info: str | None = None,
        authorization: Callable[[], str] | None = None,
        headers: Mapping[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
        timeout_s: float = TIMEOUT_S,
        waits: Callable[[int], bool] = lambda failures: False,
        normalizes: bool = False,
        follows: bool = True,
    ) -> None:
        urls = urls.split(",") if isinstance(urls, str) else urls
        if not urls:
            raise ValueError("a schema registry needs a URL")
        self._bases = [split_user(url.strip().rstrip("/")) for url in urls]
        """Each with the user that it names."""
        self._user_info = user_info
        self._authorization = authorization
        self._headers = {"Accept": _MEDIA_TYPE, **(headers or {})}
        self._tls = tls
        self._timeout_s = timeout_s
        self._waits = waits
        self._follows = follows
        self._query = "?normalize=true" if normalizes else ""
        self._schemas: dict[int | UUID, StoredSchema] = {}
        self._resolved: dict[int, str] = {}
        self._versions: dict[tuple[str, int], tuple[float, dict[str, Any]]] = {}
        """Each with when it was asked for."""
        self._ids: dict[tuple[str, str, str], int] = {}

    @property
    def url(self) -> str:
        """The first of the registry's URLs, without a user."""
        return self._bases[0][0]

    @property
    def identity(self) -> Hashable:
        """Equal for clients that ask the same registry with the same login."""
        return tuple(self._bases), self._user_info, self._authorization

    def register(self, subject: str, schema_type: str, text: str) -> int:
        """The id of the schema under the subject, registered if it is not. Raises RegistryError."""
        key = (subject, schema_type, text)
        known = self._ids.get(key)
        if known is not None:
            return known
        path = f"{_path_of(subject)}/versions{self._query}"
        answer = self._ask(path, _body(schema_type, text))
        return _keep(self._ids, key, int(_member(answer, "id", int)))

    def find(self, subject: str, schema_type: str, text: str) -> int | None:
        """The id of the schema under the subject; None where it is not. Raises RegistryError."""
        key = (subject, schema_type, text)
        known = self._ids.get(key)
        if known is not None:
            return known
        path = _path_of(subject) + self._query
        answer = self._ask(path, _body(schema_type, text), may_miss=True)
        return None if answer is None else _keep(self._ids, key, int(_member(answer, "id", int)))

    def by_id(self, schema_id: int) -> StoredSchema:
        """The schema of that id. Raises RegistryError."""
        known = self._schemas.get(schema_id)
        if known is None:
            answer = self._ask(f"/schemas/ids/{schema_id}")
            if answer is None:
                raise RegistryError(f"Schema {schema_id} is not in the schema registry")
            known = _keep(self._schemas, schema_id, self._stored(schema_id, answer))
        return known

    def by_guid(self, guid: UUID) -> StoredSchema:
        """The schema of that GUID, with id -1. Raises RegistryError."""
        known = self._schemas.get(guid)
        if known is None:
            answer = self._ask(f"/schemas/guids/{guid}")
            if answer is None:
                raise RegistryError(f"Schema {guid} is not in the schema registry")
            known = _keep(self._schemas, guid, self._stored(-1, answer))
        return known

    def resolved_avro(self, schema_id: int) -> str | None:
        """An Avro schema with its references in its text; None for an unknown id.

        Raises RegistryError.
        """
        known = self._resolved.get(schema_id)
        if known is None:
            answer = self._ask(f"/schemas/ids/{schema_id}?format=resolved")
            if answer is None or (answer.get("schemaType") or "AVRO") != "AVRO":
                return None
            known = _keep(self._resolved, schema_id, str(_member(answer, "schema", str)))
        return known

    def resolved_avro_of(self, subject: str) -> dict[int, str]:
        """The Avro schemas of a subject's versions, by id. Raises RegistryError."""
        texts = {id_: self.resolved_avro(id_) for id_ in self.version_ids(subject)}
        return {schema_id: text for schema_id, text in texts.items() if text is not None}

    def subjects(self) -> list[str]:
        """All subjects. Raises RegistryError."""
        return list(self._ask("/subjects") or [])

    def versions(self, subject: str) -> list[dict[str, Any]]:
        """A subject's versions as the registry lists them, ascending; none if it is absent.

        Raises RegistryError.
        """
        path = f"{_path_of(subject)}/versions"
        versions = []
        for version in self._ask(path) or []:
            asked_s, answer = self._versions.get((subject, version), (0.0, None))
            now_s = time.monotonic()
            if answer is None or now_s - asked_s >= _VERSION_KEPT_S:
                answer = self._ask(f"{path}/{version}")
                if answer is None:
                    continue  # deleted since
                _keep(self._versions, (subject, version), (now_s, answer))
            versions.append(answer)
        return versions

    def version_ids(self, subject: str) -> list[int]:
        """The ids of a subject's versions, ascending; none if it is absent.

        Raises RegistryError.
        """
        return [int(_member(version, "id", int)) for version in self.versions(subject)]

    def latest(self, subject: str) -> StoredSchema | None:
        """The subject's latest version; None where there is no such subject."""
        answer = self._ask(f"{_path_of(subject)}/versions/latest")
        return None if answer is None else self._stored(int(_member(answer, "id", int)), answer)

    def _stored(self, schema_id: int, answer: Any) -> StoredSchema:
        references: dict[str, str] = {}
        self._collect(answer, references, set())
        text = str(_member(answer, "schema", str))
        return StoredSchema(
            schema_id, str(answer.get("schemaType") or "AVRO"), text, tuple(references.items())
        )

    def _collect(self, answer: Any, references: dict[str, str], seen: set[tuple[str, int]]) -> None:
        """Put what the schema refers to into `found`, each after what it refers to itself."""
        for reference in answer.get("references") or ():
            name = str(_member(reference, "name", str))
            subject = str(_member(reference, "subject", str))
            version = int(_member(reference, "version", int))
            if (subject, version) in seen:
                continue
            seen.add((subject, version))
            if len(seen) > _REFERENCES_MAX:
                raise RegistryError("The schema refers to too many others")
            inner = self._ask(f"{_path_of(subject)}/versions/{version}?deleted=true")
            if inner is None:
                raise RegistryError(f"Version {version} of {subject} is not in the schema registry")
            self._collect(inner, references, seen)
            references[name] = str(_member(inner, "schema", str))

    def _ask(self, path: str, body: Any = None, *, may_miss: bool = False) -> Any:
        """The decoded answer; None for what is not there. Raises RegistryError."""
        failures = 0
        while True:
            failure = RegistryError("The schema registry was not asked")
            for base, user in self._bases:
                try:
                    login = self._login(user)
                    return self._ask_one(base, path, login, body, may_miss=may_miss or body is None)
                except RegistryError as error:
                    if not error.retriable:
                        raise
                    failure = error
            failures += 1
            if not self._waits(failures):
                raise failure

    def _login(self, user: str | None) -> dict[str, str]:
        if self._authorization:
            return {"Authorization": self._authorization()}
        user = user or self._user_info
        return {"Authorization": basic_login(user)} if user else {}

    def _ask_one(
        self, base: str, path: str, login: Mapping[str, str], body: Any, *, may_miss: bool
    ) -> Any:
        headers = {**self._headers, **login}
        if body is not None:
            headers["Content-Type"] = _MEDIA_TYPE
        try:
            status, data = ask(
                base + path,
                headers=headers,
                timeout_s=self._timeout_s,
                body=body,
                tls=self._tls,
                follows=self._follows,
            )
        except (OSError, http.client.HTTPException) as error:
            raise RegistryError(
                f"The schema registry at {base} does not answer: {error}", retriable=True
            ) from error
        except ValueError:  # its text has the header, which may be a secret
            raise RegistryError(
                f"The address {base} or a header for the schema registry is not one of HTTP"
            ) from None
        if status == _NOT_FOUND and may_miss:
            return None
        if status >= _NOT_DONE:
            reason = _message(data.decode("utf-8", "replace"))
            raise RegistryError(
                f"The schema registry answers {status}: {reason}", retriable=status in _RETRIABLE
            )
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise RegistryError("The schema registry's answer is not JSON") from error


def _keep(cache: dict[_K, _V], key: _K, value: _V) -> _V:
    if len(cache) >= _KEPT_MAX:
        cache.clear()
    cache[key] = value
    return value


def _path_of(subject: str) -> str:
    return f"/subjects/{quote(subject, safe='')}"


def _body(schema_type: str, text: str) -> dict[str, str]:
    return {"schema": text} | ({} if schema_type == "AVRO" else {"schemaType": schema_type})


def _member(answer: Any, name: str, kind: type) -> Any:
    value = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(value, kind):
        raise RegistryError(f"The schema registry's answer has no '{name}'")
    return value


def _message(body: str) -> str:
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return body[:200]
