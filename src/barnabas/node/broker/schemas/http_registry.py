"""A schema registry over HTTP or HTTPS: Confluent's REST interface, as any registry serves it.

Each question uses its own connection: what is learnt is remembered, so questions are rare.
The files of TLS are read when an instance is first asked over https, and again after a connection
that failed: the broker starts even if they are unusable, and renewing a file needs no restart.

It is not `schemas.registry_client`: that one blocks its thread, and a node imports nothing of the
floor that products share.
"""

import asyncio
import base64
import io
import json
import re
import ssl
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, cast
from urllib.parse import urlsplit
from uuid import UUID

from barnabas.base.errors import ConfigError
from barnabas.base.tls.contexts import client_context
from barnabas.node.broker.schemas.registry import Claim, NoAnswerError
from barnabas.node.broker.schemas.wire_format import schema_of

ANSWER_SIZE_BYTES_MAX: Final = 8 << 20
TIMEOUT_S: Final = 10
"""For one request, from the connection to the last byte of the answer."""
CHUNK_SIZE_BYTES: Final = 64 * 1024
SCHEMA_NOT_FOUND: Final = 40403
DEFAULT_CONTEXT: Final = "."
OK: Final = 200
NOT_FOUND: Final = 404
DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class Instance(NamedTuple):
    """The address of one instance of the registry."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def shown(self) -> str:
        """For messages."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path}"


class HttpRegistry:
    """A `Registry` at one or more addresses; the one that answered last is asked first."""

    __slots__ = ("_authorization", "_instances", "_read_tls", "_tls")

    def __init__(
        self,
        urls: Sequence[str],
        user_info: str | None,
        read_tls: Callable[[], ssl.SSLContext] = client_context,
    ) -> None:
        """`urls` are checked; `user_info` is user:password; `read_tls` may raise ConfigError."""
        self._read_tls = read_tls
        self._tls: ssl.SSLContext | None = None
        self._instances = [_instance_of(url) for url in urls]
        self._authorization = ""
        if user_info:
            credentials = base64.b64encode(user_info.encode()).decode("ascii")
            self._authorization = f"Authorization: Basic {credentials}\r\n"

    async def holds(self, claim: Claim) -> bool:
        """As the interface says. Raises NoAnswerError."""
        schema = schema_of(claim.identity)
        assert schema is not None
        schema_id = await self._id_of(schema) if isinstance(schema, UUID) else schema
        if schema_id is None:
            return False
        name = None
        if claim.needs_record_name:
            answer = await self._ask(f"/schemas/ids/{schema_id}")
            if not isinstance(answer, dict):
                return _not_found(answer)
            kind, text = answer.get("schemaType", "AVRO"), answer.get("schema")
            name = record_name(kind, text) if isinstance(text, str) else None
        subject = claim.subject(name)
        if subject is None:
            return False
        subjects = await self._ask(f"/schemas/ids/{schema_id}/subjects")
        return subject in subjects if isinstance(subjects, list) else _not_found(subjects)

    async def _id_of(self, guid: UUID) -> int | None:
        answer = await self._ask(f"/schemas/guids/{guid}/ids")
        if not isinstance(answer, list):
            _not_found(answer)
            return None
        for entry in answer:
            if isinstance(entry, dict) and entry.get("context") in (DEFAULT_CONTEXT, "", None):
                schema_id = entry.get("id")
                return schema_id if isinstance(schema_id, int) else None
        return None

    async def _ask(self, path: str) -> Any:
        """The decoded answer of the first instance that has one; None: there is no such schema."""
        failures = []
        for instance in list(self._instances):
            try:
                answer = await self._ask_instance(instance, path)
            except NoAnswerError as failure:
                failures.append(f"{instance.shown}: {failure}")
                continue
            if self._instances[0] != instance:
                self._instances.remove(instance)
                self._instances.insert(0, instance)
            return answer
        raise NoAnswerError("; ".join(failures))

    async def _ask_instance(self, instance: Instance, path: str) -> Any:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                status, body = _parse(await self._exchange(instance, path))
        except TimeoutError:
            raise NoAnswerError(f"no answer in {TIMEOUT_S} s") from None
        except ConfigError as error:
            raise NoAnswerError(str(error)) from error
        except ssl.SSLCertVerificationError as error:
            self._tls = None
            raise NoAnswerError(f"its certificate is refused: {error.verify_message}") from error
        except OSError as error:
            self._tls = None
            raise NoAnswerError(error.strerror or str(error)) from error
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            answer = None
            if status == OK:
                raise NoAnswerError("the answer is not JSON") from None
        if status == OK and answer is not None:
            return answer
        code = answer.get("error_code") if isinstance(answer, dict) else None
        if status == NOT_FOUND and code == SCHEMA_NOT_FOUND:
            return None
        raise NoAnswerError(f"HTTP status {status} for {path}")

    async def _exchange(self, instance: Instance, path: str) -> bytes:
        """All bytes of the answer; the registry closes the connection after them."""
        host = f"[{instance.host}]" if ":" in instance.host else instance.host
        tls = await self._context() if instance.scheme == "https" else None
        reader, writer = await asyncio.open_connection(instance.host, instance.port, ssl=tls)
        try:
            writer.write(
                f"GET {instance.path}{path} HTTP/1.1\r\n"
                f"Host: {host}:{instance.port}\r\n"
                "Accept: application/vnd.schemaregistry.v1+json, application/json\r\n"
                f"{self._authorization}"
                "Connection: close\r\n\r\n".encode("ascii")
            )
            received = bytearray()
            while chunk := await reader.read(CHUNK_SIZE_BYTES):
                received += chunk
                if len(received) > ANSWER_SIZE_BYTES_MAX:
                    raise NoAnswerError(f"an answer of more than {ANSWER_SIZE_BYTES_MAX} bytes")
            return bytes(received)
        finally:
            writer.transport.abort()

    async def _context(self) -> ssl.SSLContext:
        """Raises ConfigError."""
        if self._tls is None:
            self._tls = await asyncio.to_thread(self._read_tls)  # the system's store is large
        return self._tls


def _instance_of(url: str) -> Instance:
    parts = urlsplit(url)
    port = parts.port or DEFAULT_PORTS[parts.scheme]
    return Instance(parts.scheme, parts.hostname or "", port, parts.path.rstrip("/"))


def _not_found(answer: object) -> bool:
    """False for the answer that there is no such schema. Raises NoAnswerError for any other."""
    if answer is not None:
        raise NoAnswerError("the answer is not what was asked for")
    return False


class _Received:
    """A received answer, in the place of the socket that http.client reads."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, mode: str) -> io.BytesIO:
        return io.BytesIO(self._data)


def _parse(data: bytes) -> tuple[int, bytes]:
    """Status and body. Raises NoAnswerError."""
    import http.client  # rarely needed

    try:
        response = http.client.HTTPResponse(cast("Any", _Received(data)), method="GET")
        response.begin()
        return response.status, response.read()
    except (http.client.HTTPException, ValueError, OSError):
        raise NoAnswerError("the answer is not HTTP") from None


# -- the name of a schema's record, after which some subjects are named
#
# As the `name()` of Confluent's schemas: of an Avro record its full name, of a JSON Schema its
# title, of Protobuf the first message (or, without messages, the first enum) with its package.


_PROTOBUF_TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|[A-Za-z_][\w.]*|[{};]""",
    re.DOTALL,
)


def record_name(schema_type: str, text: str) -> str | None:
    """The name, or None where the schema has none (an Avro union, JSON without a title)."""
    if schema_type == "PROTOBUF":
        return _protobuf_name(text)
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if schema_type == "JSON":
        title = schema.get("title") if isinstance(schema, dict) else None
        return title if isinstance(title, str) else None
    return _avro_name(schema) if schema_type == "AVRO" else None


def _avro_name(schema: Any) -> str | None:
    while isinstance(schema, dict) and isinstance(schema.get("type"), dict):
        schema = schema["type"]
    if not isinstance(schema, dict) or schema.get("type") not in ("record", "error"):
        return None
    name, namespace = schema.get("name"), schema.get("namespace")
    if not isinstance(name, str):
        return None
    if "." in name or not isinstance(namespace, str) or not namespace:
        return name.removeprefix(".")
    return f"{namespace}.{name}"


def _protobuf_name(text: str) -> str | None:
    package = ""
    first: dict[str, str] = {}
    depth = 0
    before = before_that = ""
    for token in _PROTOBUF_TOKEN.findall(text):
        if token.startswith(("//", "/*")):
            continue
        if token == "{":
            if depth == 0 and before_that in ("message", "enum"):
                first.setdefault(before_that, before)
            depth += 1
        elif token == "}":
            depth -= 1
        elif token == ";" and depth == 0 and before_that == "package":
            package = before
        before, before_that = token, before
    name = first.get("message") or first.get("enum")
    return f"{package}.{name}" if name and package else name
