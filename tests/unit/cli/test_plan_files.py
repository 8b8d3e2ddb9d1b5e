"""Plans of moves as files, as people and Kafka's tool write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.cli.balance.model import Move
from barnabas.cli.balance.plan_file import parse_plan, read_plan, to_document
from barnabas.cli.errors import CliError, ExitCode


def entry(**fields: Any) -> dict[str, Any]:
    return {"topic": "t", "partition": 0, "replicas": [1, 2], **fields}


def test_what_is_written_is_read() -> None:
    moves = [Move("t", 0, (1, 2), (2, 3)), Move("u", 7, (1,), (4,))]
    assert parse_plan(to_document(moves)) == {
        TopicPartition("t", 0): (2, 3),
        TopicPartition("u", 7): (4,),
    }


def test_what_kafkas_tool_writes_is_read() -> None:
    """With its log directories, which a plan for brokers has no use for."""
    document = {"version": 1, "partitions": [entry(log_dirs=["any", "any"])]}
    assert parse_plan(document) == {TopicPartition("t", 0): (1, 2)}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ([], 'no list "partitions"'),
        ({}, 'no list "partitions"'),
        ({"partitions": {}}, 'no list "partitions"'),
        ({"partitions": []}, "has no partitions"),
        ({"version": 2, "partitions": [entry()]}, "version 2"),
        ({"partitions": ["t-0"]}, "partitions[0] is not an object"),
        ({"partitions": [entry(topic=None)]}, "partitions[0] has no topic"),
        ({"partitions": [entry(partition="0")]}, "no partition number"),
        ({"partitions": [entry(partition=True)]}, "no partition number"),
        ({"partitions": [entry(partition=-1)]}, "no partition number"),
        ({"partitions": [entry(replicas=[])]}, "no list of replicas"),
        ({"partitions": [entry(replicas=["1"])]}, "no list of replicas"),
        ({"partitions": [entry(replicas=[1, 1])]}, "two replicas on one broker"),
        ({"partitions": [entry(), entry()]}, "names t-0 twice"),
        ({"partitions": [entry(log_dirs=["any", "/data"])]}, "names log_dirs"),
        ({"partitions": [entry(log_dirs=1)]}, "names log_dirs"),
    ],
)
def test_what_is_no_plan(document: Any, words: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011  the words are what counts
        parse_plan(document)
    assert words in str(caught.value)


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    with pytest.raises(CliError) as caught:
        read_plan(str(path))
    assert caught.value.code is ExitCode.NOT_FOUND
    for content, words in (("{", "is not JSON"), ('{"partitions": 1}', "no list")):
        path.write_text(content)
        with pytest.raises(CliError) as caught:
            read_plan(str(path))
        assert caught.value.code is ExitCode.USAGE
        assert words in caught.value.message
        assert str(path) in caught.value.message
    path.write_text(json.dumps({"partitions": [entry()]}))
    assert read_plan(str(path)) == {TopicPartition("t", 0): (1, 2)}
