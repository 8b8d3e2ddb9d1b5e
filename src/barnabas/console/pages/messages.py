"""Records as JSON: pages, tails, searches, downloads, and producing."""

from __future__ import annotations

import base64
import binascii
import json
import threading
from collections.abc import Iterator
from typing import Any

from barnabas.console.pages.calls import (
    BadRequestError,
    Call,
    Download,
    Endpoint,
    Streamed,
    members,
)
from barnabas.console.services.asking import AbsentError
from barnabas.console.services.decoding import Decoded, to_json
from barnabas.console.services.expressions import (
    Expression,
    ExpressionError,
    compile_expression,
)
from barnabas.console.services.messages import Produced, Progress, Record, Start

CURSOR_MAX = 10_000
VALUE_BYTES_MAX = 1 << 20
SHOWN_CHARS_MAX = 4_000
"""Characters of a value in a list; the whole record is asked for by itself."""


def messages(call: Call) -> Any:
    """A page of records."""
    page = call.services.messages.page(
        call.path["topic"],
        _start(call),
        partition=_partition(call),
        limit=call.number("limit", 50),
        cursor=_cursor(call.text("cursor")),
        hidden=call.masked,
    )
    return {
        "records": [record_json(one) for one in page.records],
        "cursor": ",".join(f"{number}:{offset}" for number, offset in page.cursor.items()),
        "is_complete": page.is_complete,
        "has_more": page.has_more,
    }


def message(call: Call) -> Any:
    """One record, whole."""
    found = _one(call)
    return record_json(found[1], shown_max=None)


def download(call: Call) -> Any:
    """The bytes of a key or value."""
    part = call.path["part"]
    if part not in ("key", "value"):
        raise BadRequestError("the part is key or value")
    if call.masked:
        call.user.need("unmasked", "downloading bytes", topic=call.path["topic"])
    found, record = _one(call)
    data: Any = found.key() if part == "key" else found.value()
    name = f"{call.path['topic']}-{record.partition}-{record.offset}.{part}"
    return Download(name, bytes(data or b""))


def _one(call: Call) -> tuple[Any, Record]:
    try:
        partition, offset = int(call.path["partition"]), int(call.path["offset"])
    except ValueError:
        raise BadRequestError("partition and offset are numbers") from None
    found = call.services.messages.one(call.path["topic"], partition, offset, hidden=call.masked)
    if found is None:
        raise AbsentError(f"there is no record at offset {offset} of partition {partition}")
    return found


def dead_letters(call: Call) -> Any:
    """The newest records of a dead letter queue, with the reason from their headers."""
    found = call.services.dead_letters.newest(
        call.path["topic"], call.text("connector"), hidden=call.masked
    )
    return {
        "letters": [
            {"record": record_json(one.record), "reason": one.reason} for one in found.letters
        ],
        "others": found.others,
        "is_complete": found.is_complete,
        "has_more": found.has_more,
    }


def search(call: Call) -> Any:
    """A search: lines with records and progress."""
    topic, start, partition = call.path["topic"], _start(call), _partition(call)
    expression, limit = expression_of(call.text("filter")), call.number("limit", 100)
    if expression is None:
        raise BadRequestError("the filter is missing", 0)
    call.services.cluster.topic(topic)

    def lines(stopping: threading.Event) -> Iterator[Any]:
        for item in call.services.messages.search(
            topic,
            expression,
            start,
            stopping,
            partition=partition,
            limit=limit,
            hidden=call.masked,
        ):
            yield _search_line(item)

    return Streamed(lines)


def _search_line(item: Record | Progress) -> dict[str, Any]:
    if isinstance(item, Record):
        return {"record": record_json(item)}
    return {"progress": {**members(item), "seconds": round(item.seconds, 3)}}


def tail(call: Call) -> Any:
    """The live tail: lines with new records."""
    topic, partition = call.path["topic"], _partition(call)
    expression = expression_of(call.text("filter"))
    call.services.cluster.topic(topic)

    def lines(stopping: threading.Event) -> Iterator[Any]:
        for step in call.services.messages.tail(
            topic, stopping, expression=expression, partition=partition, hidden=call.masked
        ):
            yield {"records": [record_json(one) for one in step.records], "skipped": step.skipped}

    return Streamed(lines)


def check(call: Call) -> Any:
    """Return whether an expression is right."""
    expression_of(call.text("filter"))
    return {}


def produce(call: Call) -> Any:
    """Write a record."""
    topic = call.path["topic"]
    partition = call.body.get("partition")
    if partition is not None and (not isinstance(partition, int) or partition < 0):
        raise BadRequestError("partition is not a number")
    given = call.body.get("headers", [])
    if not isinstance(given, list) or not all(
        isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) for pair in given
    ):
        raise BadRequestError("headers are a list of pairs")
    record = Produced(
        _bytes(call, "key"),
        _bytes(call, "value"),
        [(name, None if value is None else str(value).encode()) for name, value in given],
        partition,
    )
    number, offset = call.do(
        "produce", topic, lambda: call.services.messages.produce(topic, record)
    )
    return {"partition": number, "offset": offset}


def _bytes(call: Call, name: str) -> bytes | None:
    """A key or value of the body: null, a text, or `{"base64": …}`."""
    given = call.body.get(name)
    if given is None:
        return None
    if isinstance(given, str):
        data = given.encode("utf-8", "surrogatepass")
    elif isinstance(given, dict) and isinstance(given.get("base64"), str):
        try:
            data = base64.b64decode(given["base64"], validate=True)
        except (binascii.Error, ValueError):
            raise BadRequestError(f"{name} is not base64") from None
    else:
        raise BadRequestError(f"{name} is null, a text or base64")
    if len(data) > VALUE_BYTES_MAX:
        raise BadRequestError(f"{name} is larger than {VALUE_BYTES_MAX} bytes")
    return data


def expression_of(text: str) -> Expression | None:
    """The compiled filter; None for no text. Raises BadRequestError with the position."""
    if not text.strip():
        return None
    try:
        return compile_expression(text)
    except ExpressionError as error:
        raise BadRequestError(error.message, error.position) from error


def record_json(record: Record, shown_max: int | None = SHOWN_CHARS_MAX) -> dict[str, Any]:
    """A record for the page; values of lists are cut."""
    return {
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        "key": _decoded(record.key, shown_max),
        "value": _decoded(record.value, shown_max),
        "headers": [{"name": name, **_decoded(value, shown_max)} for name, value in record.headers],
    }


def _decoded(found: Decoded, shown_max: int | None) -> dict[str, Any]:
    value = to_json(found.value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    made: dict[str, Any] = {"form": found.form, "size": found.size}
    if found.form == "null":
        return made
    is_cut = shown_max is not None and len(text) > shown_max
    made["text"] = text[:shown_max] if is_cut else text
    if is_cut:
        made["is_cut"] = True
    if found.schema is not None:
        made["schema"] = found.schema
    if found.reason is not None:
        made["reason"] = found.reason
    return made


def _start(call: Call) -> Start:
    kind = call.text("from", "newest")
    if kind not in ("newest", "oldest", "offset", "time"):
        raise BadRequestError("from is newest, oldest, offset or time")
    return Start(kind, call.number("value", 0))


def _partition(call: Call) -> int | None:
    number = call.number("partition", -1)
    return None if number < 0 else number


def _cursor(text: str) -> dict[int, int]:
    parts = [part.split(":") for part in text.split(",") if part]
    if len(parts) > CURSOR_MAX:
        raise BadRequestError("the cursor is too long")
    try:
        return {int(number): int(offset) for number, offset in parts}
    except ValueError:
        raise BadRequestError("the cursor is not one of this console") from None


ENDPOINTS = (
    Endpoint("GET", "/api/topics/{topic}/messages", "read", "reading records", messages),
    Endpoint("POST", "/api/topics/{topic}/messages", "produce", "writing records", produce),
    Endpoint(
        "GET",
        "/api/topics/{topic}/messages/{partition}/{offset}",
        "read",
        "reading records",
        message,
    ),
    Endpoint(
        "GET",
        "/api/topics/{topic}/messages/{partition}/{offset}/{part}",
        "read",
        "reading records",
        download,
    ),
    Endpoint("GET", "/api/topics/{topic}/dead-letters", "read", "reading records", dead_letters),
    Endpoint("GET", "/api/topics/{topic}/search", "read", "reading records", search, True),
    Endpoint("GET", "/api/topics/{topic}/tail", "read", "reading records", tail, True),
    Endpoint("GET", "/api/expression", "view", "filters", check),
)
