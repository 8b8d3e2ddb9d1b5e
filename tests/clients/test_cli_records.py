"""`barnabas produce`, `consume` and `group` against a cluster."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO

import pytest
from client_matrix import KEPT

import barnabas
from barnabas.app.testing import Kafka
from barnabas.cli.errors import ExitCode
from support.child_signals import usual_signals
from support.cli import ClusterCli, following, run_cli, with_login
from support.node_process import wait_until
from support.patience import PATIENCE_S


@pytest.fixture
def cli(kafka: Kafka) -> ClusterCli:
    return ClusterCli(kafka.bootstrap_servers)


@pytest.fixture
def topic(kafka: Kafka) -> str:
    return kafka.topic(config=KEPT)


def test_lines_in_lines_out(cli: ClusterCli, topic: str) -> None:
    sent = cli.ok("produce", topic, stdin="a\nü b\r\n\nlast".encode())
    assert sent.text == f"4 records sent to {topic}\n"
    assert cli.ok("consume", topic).lines == ["a", "ü b", "", "last"]


def test_nothing_in_nothing_out(cli: ClusterCli, topic: str) -> None:
    assert cli.json("produce", topic)["records"] == 0
    assert cli.ok("consume", topic).out == b""


def test_keys_headers_tombstones_timestamp(cli: ClusterCli, topic: str) -> None:
    arguments = ["-v", "x", "-v", "", "-k", "key", "-H", "a=b=c", "-H", "none", "--tombstones"]
    sent = cli.json("produce", topic, *arguments, "--timestamp", "1760000000123")
    assert sent == {"topic": topic, "records": 2, "partitions": {"0": [0, 1]}}
    first, second = cli.json_lines("consume", topic)
    assert first == {
        "topic": topic,
        "partition": 0,
        "offset": 0,
        "timestamp": 1760000000123,
        "key": "key",
        "value": "x",
        "headers": [["a", "b=c"], ["none", None]],
    }
    assert second["value"] is None
    raw = cli.ok("consume", topic, "--keys", "--headers", "-n", "1")
    assert raw.text == "key\ta=b=c,none=\tx\n"


def test_a_separator_splits_key_and_value(cli: ClusterCli, topic: str) -> None:
    cli.ok("produce", topic, "-K", "::", stdin=b"a::b::c\nno key\n")
    records = cli.json_lines("consume", topic)
    assert [(r["key"], r["value"]) for r in records] == [("a", "b::c"), (None, "no key")]
    shown = cli.ok("consume", topic, "-K", "::")
    assert shown.text == "a::b::c\n::no key\n"
    headed = cli.ok("consume", topic, "-K", " = ", "--headers", "--count", "1")
    assert headed.text == "a = \tb::c\n"


def test_a_long_file_shows_no_bar_without_a_terminal(
    cli: ClusterCli, topic: str, tmp_path: Path
) -> None:
    path = tmp_path / "long"
    path.write_text(("x" * 99 + "\n") * 4000)
    sent = cli.ok("produce", topic, str(path))
    assert (sent.text, sent.err) == (f"4000 records sent to {topic}\n", "")
    whole = cli.ok("produce", topic, str(path), "-F", "raw", "-z", "gzip")
    assert whole.text == f"1 record sent to {topic}\n"


def test_json_goes_round(cli: ClusterCli, topic: str, kafka: Kafka) -> None:
    records = [
        {"key": "k", "value": {"a": [1, "ü"]}, "headers": {"h": "1"}, "timestamp": 1760000000000},
        {"value_base64": "//4=", "headers": [["x", {"base64": "/w=="}], ["x", None]]},
        {"key": "k", "value": None},
    ]
    text = "\n".join(json.dumps(record) for record in records) + "\n\n"
    cli.ok("produce", topic, "-F", "json", stdin=text.encode())
    read = cli.ok("consume", topic, "-F", "json")
    assert json.loads(read.lines[0])["value"] == '{"a":[1,"ü"]}'
    copy = kafka.topic("copy", config=KEPT)
    cli.ok("produce", copy, "-F", "json", "--repartition", stdin=read.out)
    places = {"topic", "offset"}
    copied = cli.json_lines("consume", copy)
    original = [json.loads(line) for line in read.lines]
    assert [strip(record, places) for record in copied] == [
        strip(record, places) for record in original
    ]


def test_a_timestamp_of_0_goes_round_in_its_place(
    cli: ClusterCli, topic: str, kafka: Kafka
) -> None:
    stamps = [5, 0, 6, 0, 0, 7]
    lines = [json.dumps({"value": str(n), "timestamp": at}) for n, at in enumerate(stamps)]
    cli.ok("produce", topic, "-F", "json", stdin="\n".join(lines).encode())
    copy = kafka.topic("copy", config=KEPT)
    cli.ok("produce", copy, "-F", "json", stdin=cli.ok("consume", topic, "-F", "json").out)
    read = cli.json_lines("consume", copy)
    assert [(record["value"], record["timestamp"]) for record in read] == [
        (str(number), at) for number, at in enumerate(stamps)
    ]
    cli.ok("produce", topic, "-v", "a", "--timestamp", "0")
    assert cli.json_lines("consume", topic)[-1]["timestamp"] == 0


def strip(record: dict[str, object], names: set[str]) -> dict[str, object]:
    return {name: value for name, value in record.items() if name not in names}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("nonsense", "line 2"),
        ("[1]", "JSON object"),
        ('{"vlaue": 1}', "vlaue"),
        ('{"value": "a", "partition": "0"}', "whole number"),
        ('{"value": "a", "timestamp": -1}', "timestamp is 0 or more"),
        ('{"value_base64": "%"}', "line 2"),
    ],
)
def test_bad_json_is_named_by_line(cli: ClusterCli, topic: str, line: str, words: str) -> None:
    result = cli.run("produce", topic, "-F", "json", stdin=f'{{"value": 1}}\n{line}\n'.encode())
    assert result.code == 2
    assert words in result.err


def test_raw_input_is_one_record_and_files_are_read(
    cli: ClusterCli, topic: str, tmp_path: Path
) -> None:
    path = tmp_path / "input"
    path.write_bytes(b"one\ntwo")
    cli.ok("produce", topic, str(path), "-F", "raw")
    cli.ok("produce", topic, str(path), str(path))
    values = [record["value"] for record in cli.json_lines("consume", topic)]
    assert values == ["one\ntwo", "one", "two", "one", "two"]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_codecs_and_acks(cli: ClusterCli, topic: str, codec: str, acks: str) -> None:
    cli.ok("produce", topic, "-v", "x" * 500, "-z", codec, "--acks", acks)
    if acks != "0":  # with 0 nobody says when it has arrived
        assert cli.ok("consume", topic).lines == ["x" * 500]


def test_places_in_the_log(cli: ClusterCli, topic: str) -> None:
    for second in range(5):
        cli.ok(
            "produce", topic, "-v", str(second), "--timestamp", str(1760000000000 + second * 1000)
        )

    def read(*arguments: str) -> str:
        return "".join(cli.ok("consume", topic, *arguments).lines)

    assert read() == read("--from", "earliest", "--to", "latest") == "01234"
    assert read("--from", "2", "--to", "4") == "23"
    assert read("--from", "-2") == "34"
    assert read("--from", "+1", "-n", "2") == "12"
    assert read("--to", "-4") == "0"
    assert read("--from", "@1760000001001", "--to", "@1760000003000") == "2"
    assert read("--from", "2025-10-09T08:53:22Z") == "234"
    assert read("--from", "latest") == ""
    assert read("--from", "99") == ""
    assert read("--from", "3", "--to", "1") == ""


def test_partitions(cli: ClusterCli, kafka: Kafka) -> None:
    topic = kafka.topic(partitions=3)
    for partition in range(3):
        cli.ok("produce", topic, "-v", f"p{partition}", "-p", str(partition))
    assert sorted(cli.ok("consume", topic).lines) == ["p0", "p1", "p2"]
    assert sorted(cli.ok("consume", topic, "-p", "0", "-p", "2").lines) == ["p0", "p2"]
    assert cli.run("consume", topic, "-p", "3").code == 4
    assert cli.run("produce", topic, "-v", "x", "-p", "3").code == 4


def test_templates(cli: ClusterCli, topic: str) -> None:
    cli.ok("produce", topic, "-v", "v", "-k", "k", "-H", "a=1", "--timestamp", "1760000000000")
    template = "{topic}/{partition}@{offset:03d} {time} {timestamp} {key}={value} {headers} "
    line = cli.ok("consume", topic, "-t", template + r"{headers[a]}\t{headers[b]}|").text
    assert line == (f"{topic}/0@000 2025-10-09T08:53:20.000Z 1760000000000 k=v a=1 1\t|\n")
    for wrong in ("{nope}", "{", "{offset:x:y}"):
        assert cli.run("consume", topic, "-t", wrong).code == 2


def test_a_record_too_large_is_refused(cli: ClusterCli, kafka: Kafka) -> None:
    topic = kafka.topic(config={"max.message.bytes": "1000"})
    result = cli.run("produce", topic, "-v", "x" * 2000)
    assert result.code == 1
    assert "MESSAGE_TOO_LARGE" in result.err


def test_follow(cli: ClusterCli, topic: str) -> None:
    cli.ok("produce", topic, stdin=b"before\n")
    consume = ["consume", topic, "-f", "--from", "earliest", "-b", cli.bootstrap_servers]
    command = [sys.executable, "-m", "barnabas", *with_login(consume)]
    with usual_signals():
        follower = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with follower:
        assert follower.stdout is not None
        assert follower.stdout.readline() == b"before\n"
        cli.ok("produce", topic, stdin=b"after\n")
        assert follower.stdout.readline() == b"after\n"
        os.kill(follower.pid, signal.SIGINT)
        rest, errors = follower.communicate(timeout=PATIENCE_S)
    assert (follower.returncode, rest, errors) == (0, b"", b"")
    assert cli.run("consume", topic, "-f", "--to", "latest").code == 2


@pytest.mark.parametrize("more", [(), ("--from", "latest"), ("--group", "of-new-topics")], ids=str)
def test_follow_waits_for_a_topic_that_does_not_exist_yet(
    cli: ClusterCli, kafka: Kafka, topic: str, more: tuple[str, ...]
) -> None:
    later = kafka.name("later")
    follow = ["consume", later, topic, "-f", "-t", "{topic} {value}", *more]
    with following(cli, *follow) as follower:
        assert follower.stdout is not None
        assert follower.stderr is not None
        assert follower.stderr.readline() == f"topic {later} does not exist yet: waiting for it\n"
        assert cli.run("topic", "describe", later).code == ExitCode.NOT_FOUND, "it made the topic"
        send_until_seen(cli, topic, f"{topic} x\n", follower.stdout)
        cli.ok("topic", "create", later, "--partitions", "3")
        send_until_seen(cli, later, f"{later} x\n", follower.stdout)
    assert follower.returncode == 0


def test_all_records_of_a_topic_that_was_waited_for_are_shown(
    cli: ClusterCli, kafka: Kafka
) -> None:
    later = kafka.name("later")
    with following(cli, "consume", later, "-f") as follower:
        assert follower.stdout is not None
        assert follower.stderr is not None
        assert "waiting" in follower.stderr.readline()
        cli.ok("topic", "create", later)
        cli.ok("produce", later, stdin=b"first\nsecond\n")
        assert [follower.stdout.readline() for _ in range(2)] == ["first\n", "second\n"]


def test_only_topics_are_waited_for(cli: ClusterCli, kafka: Kafka, topic: str) -> None:
    later = kafka.name("later")
    for more in ((), ("--group", "g")):
        result = cli.run("consume", later, *more)
        assert (result.code, "[UNKNOWN_TOPIC_OR_PARTITION]" in result.err) == (4, True)
    partition = cli.run("consume", topic, "-f", "-p", "99")
    assert (partition.code, "has no partition 99" in partition.err) == (4, True)
    assert cli.run("consume", "no such name", "-f").code == 1
    with following(cli, "consume", later, "-f", "-p", "1") as follower:
        assert follower.stderr is not None
        assert "waiting" in follower.stderr.readline()
        cli.ok("topic", "create", later, "--partitions", "1")
        assert f"topic {later} has no partition 1" in follower.stderr.readline()
        assert follower.wait(PATIENCE_S) == 4


def send_until_seen(cli: ClusterCli, topic: str, line: str, out: IO[str]) -> None:
    """Send records until one is shown: where a follower begins at the end, that is some time."""
    seen = threading.Event()

    def read() -> None:
        while out.readline() != line:
            pass
        seen.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()

    def sent() -> bool:
        cli.ok("produce", topic, "-v", "x")
        return seen.wait(1)

    wait_until(sent, f"{line!r} being shown")


def test_a_reader_that_leaves_is_no_error(cli: ClusterCli, topic: str) -> None:
    cli.ok("produce", topic, stdin=b"a line that is somewhat long\n" * 20000)
    consume = " ".join(with_login(["consume", topic, "-b", cli.bootstrap_servers]))
    command = f"{sys.executable} -m barnabas {consume} | head -n 1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == b"a line that is somewhat long\n"


def test_a_group_reads_on_where_it_was(cli: ClusterCli, topic: str, kafka: Kafka) -> None:
    group = kafka.name("group")
    cli.ok("produce", topic, stdin=b"a\nb\nc\n")
    assert cli.ok("consume", topic, "-g", group, "-n", "2").lines == ["a", "b"]
    assert cli.ok("consume", topic, "-g", group).lines == ["c"]
    assert cli.ok("consume", topic, "-g", group).lines == []


def test_a_group_without_a_coordinator_is_waited_for_aloud() -> None:
    """Its topic of offsets needs more brokers than there are. Kafka's consumer waits, too."""
    command = [sys.executable, "-m", "barnabas", "consume", "t", "-g", "readers"]
    with barnabas.Cluster(config={"offsets.topic.replication.factor": "3"}) as cluster:
        here = ["-b", cluster.bootstrap_servers]
        assert run_cli("topic", "create", "t", *here).code == 0
        with subprocess.Popen([*command, *here], stderr=subprocess.PIPE, text=True) as process:
            try:
                assert process.stderr is not None
                assert process.stderr.readline() == (
                    "still waiting: group readers has no coordinator (COORDINATOR_NOT_AVAILABLE); "
                    "`barnabas doctor` may know why\n"
                )
                assert process.poll() is None
            finally:
                process.kill()
            assert process.stderr.read() == ""


def test_what_a_group_decides_cannot_be_given(cli: ClusterCli, topic: str) -> None:
    for more in (["--from", "5"], ["--to", "9"], ["-p", "0"]):
        assert cli.run("consume", topic, "-g", "g", *more).code == 2


def test_groups_are_listed_described_and_deleted(cli: ClusterCli, topic: str, kafka: Kafka) -> None:
    group = kafka.name("group")
    cli.ok("produce", topic, stdin=b"a\nb\nc\n")
    cli.ok("consume", topic, "-g", group, "-n", "1")
    rows = [row for row in cli.json("group", "list") if row["group"] == group]
    assert rows == [{"group": group, "state": "Empty", "type": "Classic"}]
    (described,) = cli.json("group", "describe", group)
    assert (described["state"], described["lag"], described["members"]) == ("Empty", 2, [])
    (row,) = described["offsets"]
    assert (row["topic"], row["offset"], row["end"], row["lag"]) == (topic, 1, 3, 2)
    assert f"{group}  Empty, 0 members, lag 2" in cli.ok("group", "describe", group).text
    cli.ok("group", "delete", group, "--yes")
    assert cli.run("group", "describe", group).code == 4
    assert cli.run("group", "delete", group, "--yes").code == 4


def test_members_are_shown(cli: ClusterCli, topic: str, kafka: Kafka) -> None:
    group = kafka.name("group")
    cli.ok("produce", topic, stdin=b"a\n")
    consumer = kafka.consumer(
        topic, group_id=group, client_id="the-client", enable_auto_commit=False
    )
    try:
        assert consumer.poll(PATIENCE_S) is not None
        (described,) = cli.json("group", "describe", group)
        text = cli.ok("group", "describe", group).text
    finally:
        consumer.close()
    assert described["state"] == "Stable"
    assert f"{group}  Stable, 1 member, lag 0, unknown for 1 partition" in text
    (member,) = described["members"]
    assert (member["client"], member["partitions"]) == ("the-client", [f"{topic}-0"])
    assert described["offsets"][0]["member"] == member["member"]


def test_groups_that_there_are_are_described_beside_one_that_is_not(
    cli: ClusterCli, topic: str, kafka: Kafka
) -> None:
    group = kafka.name("group")
    cli.ok("produce", topic, stdin=b"a\n")
    cli.ok("consume", topic, "-g", group)
    for format_option in ([], ["--json"]):
        result = cli.run("group", "describe", group, "missing", *format_option)
        assert result.code == 4
        assert "there is no group missing" in result.err
        assert group in result.text
    result = cli.run("group", "describe", "missing", "gone")
    assert (result.code, result.out) == (4, b"")
    assert "there is no group missing, gone" in result.err


def test_a_group_that_is_not_there_is_reset_on_request_only(
    cli: ClusterCli, topic: str, kafka: Kafka
) -> None:
    cli.ok("produce", topic, stdin=b"a\nb\n")
    command = ["group", "reset-offsets", kafka.name("new"), "--topic", topic, "--to", "1"]
    refused = cli.run(*command, "--execute")
    assert refused.code == 4
    assert "there is no group" in refused.err
    assert cli.json(*command, "--execute", "--create")[0]["after"] == 1
    assert cli.ok("consume", topic, "-g", command[2]).lines == ["b"]


def test_offsets_are_reset(cli: ClusterCli, topic: str, kafka: Kafka) -> None:
    group = kafka.name("group")
    cli.ok("produce", topic, stdin=b"a\nb\nc\n")
    cli.ok("consume", topic, "-g", group)
    command = ["group", "reset-offsets", group]
    row = {"topic": topic, "partition": 0, "before": 3, "after": 1}
    assert cli.json(*command, "--topic", topic, "--to", "-2") == [row]
    assert cli.ok("consume", topic, "-g", group).lines == [], "a plan changes nothing"
    assert cli.json(*command, "--topic", f"{topic}:0", "--to", "-2", "--execute") == [row]
    assert cli.ok("consume", topic, "-g", group).lines == ["b", "c"]
    cli.ok(*command, "--all-topics", "--to", "earliest", "--execute")
    assert cli.ok("consume", topic, "-g", group).lines == ["a", "b", "c"]
    assert cli.run(*command, "--to", "earliest").code == 2
    assert cli.run(*command, "--topic", f"{topic}:x", "--to", "earliest").code == 2
    assert cli.run(*command, "--topic", f"{topic}:7", "--to", "earliest").code == 4
