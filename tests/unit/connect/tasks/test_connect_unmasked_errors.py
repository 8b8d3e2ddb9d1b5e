"""Status and log do not quote fields that a connector's transforms mask; dead letters may."""

from __future__ import annotations

import logging
import pickle
import traceback
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import connect_task_plugins as plugins
import pytest

from barnabas.connect.connectors.base import SourceReader, TaskContext
from barnabas.connect.converters.json import JsonConverter
from barnabas.connect.errors.reports import Unmasked, trace_of
from barnabas.connect.record import ConnectRecord, RawRecord, SourceRecord
from barnabas.connect.tasks.spark_jobs import Failed
from barnabas.connect.testing import ConnectKit
from barnabas.connect.transforms.base import Transform
from barnabas.schemas.data.errors import (
    ConfigError,
    ConnectError,
    DataError,
    NotFoundError,
    RetriableError,
)
from barnabas.schemas.errors import RegistryError
from support.node_process import wait_until

HERE = f"{__name__}:"
EMAIL = "ann@b.example"
WORKER = {
    "key.converter": "connect_task_plugins:Text",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}
SINK = {"connector.class": "connect_task_plugins:CollectorSink", "topics": "in"}
SOURCE = {"connector.class": f"{HERE}PeopleSource", "topic": "out", "count": "2"}
CAST = {
    "transforms.cast.type": "org.apache.kafka.connect.transforms.Cast$Value",
    "transforms.cast.spec": "email:int32",
}
MASK = {
    "transforms.mask.type": "org.apache.kafka.connect.transforms.MaskField$Value",
    "transforms.mask.fields": "email",
}
CAST_THEN_MASK = {"transforms": "cast,mask", **CAST, **MASK}
MASK_THEN_CAST = {"transforms": "mask,cast", **CAST, **MASK}
QUOTING = {"transforms": "quote,mask", "transforms.quote.type": f"{HERE}Quoting", **MASK}
LOGGED = {"errors.log.enable": "true", "errors.log.include.messages": "true"}
WORDS = "may quote fields that are masked by transforms.mask"


class Quoting(Transform):
    """Fails with what it sees, now and later, in an error with a cause."""

    error: ClassVar[type[Exception]] = KeyError

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        try:
            raise OSError(str(record.value))
        except OSError as error:
            raise self.error(f"wrong: {record.value}") from error


class QuotingConverter(JsonConverter):
    """Fails with what it reads."""

    def to_connect(self, topic: str, data: bytes | None, headers: Any = ()) -> Any:
        raise DataError(f"no JSON: {data!r}")


class People(plugins.Numbers):
    """People with an email."""

    def read(self, partition: Any) -> Iterator[SourceRecord]:
        for one in super().read(partition):
            one.value = {"email": EMAIL}
            yield one


class BadPeople(plugins.Numbers):
    """Rows with an email that cannot be read."""

    def read(self, partition: Any) -> Iterator[SourceRecord]:
        raise DataError(f"email has a value that cannot be read: {EMAIL}")


class PeopleSource(plugins.NumberSource):
    """Reads people."""

    def reader(self, context: TaskContext) -> SourceReader:
        kind = BadPeople if context.settings.get("bad") else People
        return kind(context.settings["topic"], int(context.settings["count"]), 0)


@pytest.fixture
def kit() -> Iterator[ConnectKit]:
    plugins.Collector.values.clear()
    plugins.Collector.trouble.clear()
    with ConnectKit(WORKER) as kit:
        yield kit


def failed(kit: ConnectKit, settings: Mapping[str, str]) -> str:
    """The status of a task at a record with EMAIL."""
    kit.produce("in", b'{"email": "%s"}' % EMAIL.encode())
    return trace_of(kit.wait_for_failure(kit.start("c", settings)))


QUOTING_CONVERTER = {"value.converter": f"{HERE}QuotingConverter", "transforms": "mask", **MASK}


@pytest.mark.parametrize(
    ("settings", "kind", "function"),
    [
        (SINK | CAST_THEN_MASK, "org.apache.kafka.connect.errors.DataException", "cast_value"),
        (SINK | QUOTING_CONVERTER, "org.apache.kafka.connect.errors.DataException", "to_connect"),
        (SINK | QUOTING, "KeyError", "apply"),
        (SOURCE | CAST_THEN_MASK, "org.apache.kafka.connect.errors.DataException", "cast_value"),
        (SOURCE | QUOTING, "KeyError", "apply"),
        (
            SOURCE | {"bad": "1", "transforms": "mask"} | MASK,
            "org.apache.kafka.connect.errors.DataException",
            "read",
        ),
    ],
)
def test_status_and_log_say_where_it_failed_but_quote_nothing_that_is_masked_later(
    kit: ConnectKit,
    caplog: pytest.LogCaptureFixture,
    settings: dict[str, str],
    kind: str,
    function: str,
) -> None:
    with caplog.at_level(logging.DEBUG):
        status = failed(kit, settings | LOGGED)
    for text in (status, caplog.text):
        assert EMAIL not in text
        assert WORDS in text
        assert function in text
    assert f"{kind}: [the text" in status
    if settings.items() >= SINK.items():
        assert "the record is in-0@0" in status


@pytest.mark.parametrize(
    "settings",
    [
        SINK | {"transforms": "cast"} | CAST,
        SOURCE | {"transforms": "cast"} | CAST,
    ],
)
def test_without_a_mask_texts_are_as_they_are(
    kit: ConnectKit, caplog: pytest.LogCaptureFixture, settings: dict[str, str]
) -> None:
    with caplog.at_level(logging.ERROR):
        status = failed(kit, settings | LOGGED)
    for text in (status, caplog.text):
        assert f"Value ({EMAIL}) was out of range" in text


def test_what_fails_at_masked_fields_quotes_them(kit: ConnectKit) -> None:
    status = failed(kit, SINK | MASK_THEN_CAST)
    assert "Value () was out of range" in status
    assert EMAIL not in status


def test_a_writer_gets_masked_fields_so_that_its_errors_are_as_they_are(kit: ConnectKit) -> None:
    plugins.Collector.trouble.append(ConnectError("the table is full"))
    assert "the table is full" in failed(kit, SINK | {"transforms": "mask"} | MASK)


def test_dead_letters_have_the_text_beside_the_record(
    kit: ConnectKit, caplog: pytest.LogCaptureFixture
) -> None:
    kit.produce("in", b'{"email": "%s"}' % EMAIL.encode())
    letters = {
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": "dead",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    with caplog.at_level(logging.DEBUG):
        kit.start("c", SINK | CAST_THEN_MASK | LOGGED | letters)
        (letter,) = kit.wait_for_records("dead", 1)
        wait_until(lambda: WORDS in caplog.text, "the log's line, which comes after the letter")
    assert EMAIL in (letter.value or b"").decode()
    message = dict(letter.headers)["__connect.errors.exception.message"]
    assert EMAIL in (message or b"").decode()
    assert EMAIL not in caplog.text


def test_an_error_that_another_try_may_mend_is_not_quoted_at_the_end(
    kit: ConnectKit, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Quoting, "error", RetriableError)
    kit.produce("in", b'{"email": "%s"}' % EMAIL.encode())
    with caplog.at_level(logging.DEBUG):
        status = failed(kit, SINK | QUOTING | {"errors.retry.timeout": "1"})
    assert "RetriableException: [the text" in status
    assert EMAIL not in status + caplog.text


# -- the kinds of errors


def caught(error: Exception, cause: Exception | None = None) -> Exception:
    try:
        raise error from cause
    except Exception as found:  # noqa: BLE001  # whichever it is
        return found


PLUGIN = object()
UNMASKED = Unmasked(["a", "b"], [PLUGIN])


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (ConfigError("no such setting"), ["no such setting"]),
        (
            caught(RetriableError("no data: 503"), RegistryError("503", retriable=True)),
            ["no data: 503", "503"],
        ),
        (caught(DataError("secret"), ValueError("secret")), ["DataError", "ValueError"]),
        (caught(NotFoundError("secret")), ["NotFoundError"]),
    ],
)
def test_texts_of_settings_and_of_the_registry_stay(error: Exception, shown: list[str]) -> None:
    found: BaseException | None = UNMASKED.shown(
        PLUGIN, error, RawRecord(topic="t", partition=3, offset=7)
    )
    texts = []
    while found is not None:
        hides = "transforms.a, transforms.b" in str(found)
        kind = "ValueError" if "ValueError" in str(found) else type(found).__name__
        texts.append(kind if hides else str(found))
        found = found.__cause__
    assert texts == shown


def test_an_error_that_is_shown_does_not_lead_to_the_one_that_is_not() -> None:
    try:
        try:
            raise DataError(EMAIL)
        except DataError as error:
            raise UNMASKED.shown(PLUGIN, error)  # noqa: B904  # as flows do
    except DataError as error:
        told = "".join(traceback.format_exception(error))
        again = pickle.loads(pickle.dumps(Failed.of(error))).as_error()
    assert EMAIL not in told + trace_of(again)
    assert type(again) is DataError
    assert UNMASKED.shown(object(), again) is again
    assert Unmasked().without_text(again) is again
