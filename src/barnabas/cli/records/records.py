"""Records as text: JSON lines that `produce` reads back, and what `consume` prints."""

import base64
import datetime
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from barnabas.cli.errors import CliError, ExitCode

if TYPE_CHECKING:
    from confluent_kafka import Message

Headers = list[tuple[str, str | bytes | None]]
ReadHeaders = list[tuple[str, bytes | None]]
TEMPLATE_FIELDS = "topic, partition, offset, timestamp, time, key, value, headers"


class JsonText(bytes):
    """A key or value that has been turned into JSON."""

    __slots__ = ()


@dataclass(slots=True)
class NewRecord:
    """A record to send. `timestamp_ms` None takes the time of sending, `partition` -1 the key's."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = field(default_factory=list)
    partition: int = -1
    timestamp_ms: int | None = None


def from_json(line: str) -> NewRecord:
    """A record of one JSON object. Raises ValueError.

    `value` and `key` are text, null, or any JSON, which is sent as such; `value_base64` and
    `key_base64` hold bytes. `headers` is an object or a list of pairs.
    """
    fields = json.loads(line)
    if not isinstance(fields, dict):
        raise ValueError("a record is a JSON object")
    known = {"value", "value_base64", "key", "key_base64", "headers", "partition", "timestamp"}
    unknown = fields.keys() - known - {"topic", "offset", "time", "leader_epoch"}
    if unknown:
        raise ValueError(f"unknown field {min(unknown)!r}")
    partition, timestamp = fields.get("partition"), fields.get("timestamp")
    for name, number in (("partition", partition), ("timestamp", timestamp)):
        if number is not None and type(number) is not int:
            raise ValueError(f"{name} is a whole number")
    if timestamp is not None and timestamp < 0:
        raise ValueError("timestamp is 0 or more")
    return NewRecord(
        value=_bytes_of(fields, "value"),
        key=_bytes_of(fields, "key"),
        headers=_headers_of(fields.get("headers") or {}),
        partition=-1 if partition is None else partition,
        timestamp_ms=timestamp,
    )


def _bytes_of(fields: Mapping[str, Any], name: str) -> bytes | None:
    encoded = fields.get(f"{name}_base64")
    if encoded is not None:
        return base64.b64decode(encoded, validate=True)
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _headers_of(value: Any) -> Headers:
    pairs = value.items() if isinstance(value, dict) else value
    headers: Headers = []
    for name, content in pairs:
        if isinstance(content, dict) and "base64" in content:
            headers.append((name, base64.b64decode(content["base64"], validate=True)))
        else:
            headers.append((name, None if content is None else str(content).encode()))
    return headers


def headers_of(message: "Message") -> ReadHeaders:
    """A record's headers, which the client library's types leave vague."""
    return cast("ReadHeaders", message.headers() or [])


def to_json(message: "Message") -> str:
    """One line with everything about a record; bytes that are not UTF-8 in base64."""
    kind, timestamp = message.timestamp()
    fields: dict[str, Any] = {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": timestamp if kind else None,
    }
    _put_bytes(fields, "key", message.key())
    _put_bytes(fields, "value", message.value())
    headers = headers_of(message)
    if headers:
        fields["headers"] = [[name, _json_header(content)] for name, content in headers]
    return json.dumps(fields, ensure_ascii=False)


def _put_bytes(fields: dict[str, Any], name: str, content: bytes | None) -> None:
    if isinstance(content, JsonText):
        fields[name] = json.loads(content)
        return
    try:
        fields[name] = None if content is None else content.decode()
    except UnicodeDecodeError:
        assert content is not None, "null decodes"
        fields[f"{name}_base64"] = base64.b64encode(content).decode()


def _json_header(content: bytes | None) -> Any:
    try:
        return None if content is None else content.decode()
    except UnicodeDecodeError:
        assert content is not None, "null decodes"
        return {"base64": base64.b64encode(content).decode()}


class Template:
    """A line per record with `{field}` places, in Python's format syntax."""

    def __init__(self, text: str) -> None:
        """Raises CliError for a template that cannot be filled in."""
        self._text = text.encode().decode("unicode_escape") if "\\" in text else text
        sample = dict.fromkeys(("topic", "time", "key", "value"), "")
        numbers = dict.fromkeys(("partition", "offset", "timestamp"), 0)
        self._fill({**sample, **numbers, "headers": _HeaderTexts({})})

    def _fill(self, fields: Mapping[str, Any]) -> str:
        try:
            return self._text.format_map(fields)
        except (KeyError, ValueError, IndexError, AttributeError) as error:
            raise CliError(
                f"--template: {error} (the fields are {TEMPLATE_FIELDS})", ExitCode.USAGE
            ) from error

    def render(self, message: "Message") -> str:
        """The line for one record, without an end of line. Null is shown as nothing."""
        kind, timestamp = message.timestamp()
        return self._fill(
            {
                "topic": message.topic(),
                "partition": message.partition(),
                "offset": message.offset(),
                "timestamp": timestamp if kind else -1,
                "time": _time_text(timestamp) if kind else "",
                "key": (message.key() or b"").decode(errors="replace"),
                "value": (message.value() or b"").decode(errors="replace"),
                "headers": _HeaderTexts(
                    {
                        name: (content or b"").decode(errors="replace")
                        for name, content in headers_of(message)
                    }
                ),
            }
        )


class _HeaderTexts(dict[str, str]):
    """`{headers}` lists all, `{headers[name]}` shows one, empty where it is missing."""

    def __missing__(self, key: str) -> str:
        return ""

    def __str__(self) -> str:
        return ",".join(f"{name}={content}" for name, content in self.items())

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


def _time_text(timestamp_ms: int) -> str:
    moment = datetime.datetime.fromtimestamp(timestamp_ms / 1000, datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
