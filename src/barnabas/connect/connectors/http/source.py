"""The HTTP source: the pages of a web service's answers, from where the last one ended.

A page is asked for on the driver and is one split. The next one is asked for as long as pages have
records; then again after the interval, from where the last page ended: behind its number of
records, or on the same page, whose records that were read are passed over, until it has a next one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from barnabas.connect.config.definition import Definition
from barnabas.connect.connectors.base import (
    Settings,
    SourceConnector,
    SourceReader,
    TaskContext,
)
from barnabas.connect.connectors.http.exchange import Exchange, GaveUpError, Sleep, shown
from barnabas.connect.connectors.http.settings import SOURCE, HttpConnector
from barnabas.connect.record import JsonMap, SourceRecord
from barnabas.schemas.data.errors import ConnectError, RetriableError
from barnabas.schemas.data.schema import Schema, Type

_STRING: Final = Schema(Type.STRING)
_WAIT_SECONDS: Final = 0.1


class HttpSource(HttpConnector, SourceConnector):
    """Reads a web service.

    Its source partition is `{"url"}`, without login and parameters, its offset `{"position",
    "skip"}`: the page's cursor or number and how many of its records were read.
    """

    definition: ClassVar[Definition] = SOURCE

    def is_worth_distributing(self, settings: Settings) -> bool:
        """Not: the worker has the records of a page already."""
        return False

    def reader(self, context: TaskContext) -> SourceReader:
        """Return what asks."""
        values = self.definition.parse(context.settings)
        stored = None
        if context.offsets is not None:
            stored = context.offsets.offset(partition_of(values))
        return PageReader(values, stored, context.wait)

    def exactly_once_support(self, settings: Settings) -> bool | None:
        """Return where pages name the next page."""
        return settings.get("paging.mode", "none") != "none"

    def alter_offsets(
        self, settings: Settings, offsets: Sequence[tuple[JsonMap, JsonMap | None]]
    ) -> bool:
        """Check offsets that a user wants to store."""
        for partition, offset in offsets:
            if "url" not in partition:
                raise ConnectError("Partition objects should contain the key 'url'")
            if offset is not None and "position" not in offset:
                raise ConnectError(
                    "Offset objects should either be null or contain the key 'position'"
                )
        return True


class PageReader(SourceReader):
    """`values` are the connector's parsed settings, `wait` is TaskContext's."""

    def __init__(
        self, values: Mapping[str, Any], stored: JsonMap | None, wait: Sleep = time.sleep
    ) -> None:
        self._values = values
        self._wait: Sleep | None = wait
        self._mode = str(values["paging.mode"])
        self._exchange: Exchange | None = None
        self._place: dict[str, Any] = {"position": self._start(), "skip": 0, "round": 0}
        if stored is not None:
            self._place |= {"position": stored.get("position"), "skip": stored.get("skip", 0)}
        self._found: list[Any] | None = None
        self._end = self._place
        self._due_s = 0.0

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_exchange": None, "_wait": None}

    def _start(self) -> Any:
        start = str(self._values["paging.start"])
        return int(start or 0) if self._mode == "offset" else start or None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's
        """Return what is stored, else the start."""
        return dict(self._place)

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's
        """Ask for a page, when it is time; it is kept until it is committed."""
        if self._found is not None:
            return dict(self._end)
        left_s = self._due_s - time.monotonic()
        if left_s > 0:
            time.sleep(min(left_s, _WAIT_SECONDS))
            return dict(self._place)
        self._ask()
        return dict(self._end)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[Any]:
        """Return the page."""
        return [(start, end, self._found or [])]

    def read(self, partition: Any) -> Iterator[SourceRecord]:
        """Yield the records of a page."""
        start, end, records = partition
        where = partition_of(self._values)
        topic = str(self._values["topic"])
        is_text = self._values["response.format"] == "text"
        key_at = self._values["response.key.pointer"]
        for number, record in enumerate(records, 1):
            offset = end if number == len(records) else self._behind(start, number)
            key = None if key_at is None or is_text else pointed(record, str(key_at))
            yield SourceRecord(
                source_partition=where,
                source_offset={"position": offset["position"], "skip": offset["skip"]},
                topic=topic,
                key_schema=_STRING if isinstance(key, str) else None,
                key=key,
                value_schema=_STRING if is_text else None,
                value=record,
            )

    def _behind(self, start: Mapping[str, Any], count: int) -> dict[str, Any]:
        if self._mode == "offset":
            return {**start, "position": start["position"] + count}
        return {**start, "skip": start["skip"] + count}

    def sent(self, end: dict[str, Any]) -> bool:
        """The next page is asked for."""
        self.commit(end)
        return True

    def commit(self, end: dict[str, Any]) -> None:
        """Go on behind the page."""
        self._place = dict(end)
        self._found = None

    def stop(self) -> None:
        """Close the connections."""
        if self._exchange is not None:
            self._exchange.close()

    def _ask(self) -> None:
        place, values = self._place, self._values
        answer = self._page(place["position"])
        records = self._records(answer)
        following = None
        if self._mode == "cursor":
            following = pointed(answer, str(values["paging.cursor.pointer"]), None)
            records = records[place["skip"] :]
        if following in (None, "", place["position"]):
            end = {**self._behind(place, len(records)), "round": place["round"] + 1}
        else:
            end = {"position": following, "skip": 0, "round": place["round"] + 1}
        if self._mode == "none":
            end["skip"] = 0
        is_last = self._mode == "none" or (
            not records if self._mode == "offset" else following in (None, "", place["position"])
        )
        if is_last:
            self._due_s = time.monotonic() + float(values["poll.interval.ms"]) / 1000
        is_moved = end["position"] != place["position"]
        self._found, self._end = (records, end) if records or is_moved else (None, place)

    def _page(self, position: Any) -> Any:
        values = self._values
        if self._exchange is None:
            self._exchange = Exchange(values, self._wait or time.sleep)
        parameters: dict[str, str] = {}
        if self._mode != "none":
            if position is not None:
                parameters[str(values["paging.parameter"])] = str(position)
            if values["paging.size.parameter"]:
                parameters[str(values["paging.size.parameter"])] = str(values["paging.size"])
        more: dict[str, Any] = {"params": parameters} if parameters else {}
        if values["http.body"] is not None:
            more["content"] = str(values["http.body"]).encode()
        try:
            answer = self._exchange.send(str(values["http.method"]).upper(), **more)
        except GaveUpError as error:
            raise RetriableError(str(error)) from error
        if values["response.format"] == "text":
            return answer.text.splitlines()
        if not answer.content:
            return []
        try:
            return json.loads(answer.content)
        except (ValueError, RecursionError) as error:
            where = shown(str(values["http.url"]))
            raise ConnectError(f"{where} did not answer with JSON: {error}") from error

    def _records(self, answer: Any) -> list[Any]:
        at = str(self._values["response.records.pointer"])
        value = answer if self._values["response.format"] == "text" else pointed(answer, at, None)
        if value is None:
            return []
        return value if isinstance(value, list) else [value]


def partition_of(values: Mapping[str, Any]) -> JsonMap:
    """Return the source partition: the address without login and parameters.

    Offsets are stored, and visible to everyone who may see the connector. So no secret may be in
    them, and a new key in the parameters does not restart the source.
    """
    return {"url": shown(str(values["http.url"]))}


_NONE: Final = object()


def pointed(document: Any, pointer: str, default: Any = _NONE) -> Any:
    """Return what a JSON pointer (RFC 6901) points at. Raises ConnectError without a default."""
    value = document
    for part in pointer.split("/")[1:] if pointer else ():
        name = part.replace("~1", "/").replace("~0", "~")
        try:
            value = value[int(name)] if isinstance(value, list) else value[name]
        except (KeyError, ValueError, IndexError, TypeError):
            if default is not _NONE:
                return default
            raise ConnectError(f"the answer has nothing at {pointer}") from None
    return value
