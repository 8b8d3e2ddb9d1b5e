"""Settings of MongoDB's connectors that are old, or that are not taken."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.connect.connectors.base import TaskContext
from barnabas.connect.connectors.mongodb.connectors import MongoSink, MongoSource
from barnabas.connect.connectors.mongodb.reader import ChangeReader
from barnabas.connect.connectors.mongodb.settings import SOURCE
from barnabas.schemas.data.errors import ConfigError

OLD = {"copy.existing": "true", "copy.existing.namespace.regex": r"shop\.(a|b)"}


@pytest.mark.parametrize(
    ("connector", "more"),
    [
        (MongoSource, {"topic.mapper": "com.example.Mapper"}),
        (MongoSource, {"connection.ssl.truststore": "/trust.jks"}),
        (MongoSink, {"csfle.enabled": "true"}),
        (MongoSink, {"topic.override.orders.timeseries.timefield": "at"}),
        (MongoSink, {"field.value.transformer": "com.example.Transformer"}),
    ],
)
def test_settings_that_would_do_nothing_are_refused(connector: Any, more: dict[str, str]) -> None:
    (name,) = more
    settings = {"topics": "orders", "database": "shop", **more}
    [[text]] = connector().validate(settings).values()
    assert text.startswith(f"{name} is not supported")
    make = connector().reader if connector is MongoSource else connector().writer
    with pytest.raises(ConfigError, match="is not supported"):
        make(TaskContext("c", 0, settings))
    assert not connector().validate({**settings, name: ""})


class Copied:
    """Client, database and collection in one; records the calls that it gets."""

    def __init__(self, asked: list[Any], name: str = "") -> None:
        self.asked, self.name = asked, name

    def __getitem__(self, name: str) -> Copied:
        return Copied(self.asked, name)

    def list_collection_names(self) -> list[str]:
        return ["c", "b", "a"]

    def get_collection(self, name: str, codec_options: Any = None) -> Copied:
        return Copied(self.asked, name)

    def aggregate(self, stages: Any, *, allowDiskUse: bool) -> list[Any]:  # noqa: N803  # pymongo's
        self.asked.append((self.name, stages, allowDiskUse))
        return []


def copied(settings: dict[str, str]) -> list[Any]:
    asked: list[Any] = []
    client: Any = Copied(asked)
    reader = ChangeReader(SOURCE.parse({"database": "shop", **settings}), None)
    assert list(reader._existing(client)) == []
    return asked


def test_copies_heed_the_old_names_of_their_settings() -> None:
    assert copied(OLD) == [("a", [], True), ("b", [], True)]
    more = {
        "copy.existing.pipeline": '[{"$match": {"a": 1}}]',
        "copy.existing.allow.disk.use": "false",
        "startup.mode.copy.existing.namespace.regex": r"shop\.c",
    }
    assert copied({**OLD, **more}) == [("c", [{"$match": {"a": 1}}], False)]


@pytest.mark.parametrize(("mode", "copies"), [("", True), ("latest", False)])
def test_the_startup_mode_wins_over_its_old_name(mode: str, *, copies: bool) -> None:
    settings = {"copy.existing": "true", **({"startup.mode": mode} if mode else {})}
    assert ChangeReader(SOURCE.parse(settings), None)._copies is copies
