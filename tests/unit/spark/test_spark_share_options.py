"""Options of the share-group source, and files of verdicts: what is taken, what is refused."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from barnabas.base.ids import Uuid
from barnabas.spark.datasource.options import OptionError
from barnabas.spark.datasource.share import read_options
from barnabas.spark.datasource.share_ledger import Verdict
from barnabas.spark.datasource.share_ranges import Delivery, Partition
from barnabas.spark.datasource.share_verdicts import (
    VerdictError,
    read_verdicts,
    write_verdicts,
)

GOOD = {
    "kafka.bootstrap.servers": "a:1, b:2",
    "kafka.group.id": "g",
    "subscribe": "t, s,t",
}
TOPIC = Uuid(bytes(16))


def test_options_have_defaults_and_names_in_any_case() -> None:
    options = read_options({**GOOD, "READERS": "8", "maxrecordsperbatch": "7"})
    assert options.topics == ("s", "t")
    assert (options.readers, options.records_max, options.fails_on_loss) == (8, 7, True)


def test_security_is_that_of_the_sink() -> None:
    jaas = 'x.ScramLoginModule required username="u" password="p";'
    sasl = {"kafka.sasl.mechanism": "SCRAM-SHA-256", "kafka.sasl.jaas.config": jaas}
    options = read_options({**GOOD, "kafka.security.protocol": "SASL_SSL", **sasl})
    access = options.access
    assert (access.has_tls, access.mechanism, access.user) == (True, "SCRAM-SHA-256", "u")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"kafka.group.id": " "}, "kafka.group.id is missing"),
        ({"subscribe": ""}, "subscribe is missing"),
        ({"subscribe": " , "}, "subscribe is missing"),
        ({"kafka.bootstrap.servers": "a"}, "'a' is not host:port"),
        ({"reader": "1"}, "unknown option reader"),
        ({"kafka.fetch.max.bytes": "1"}, "kafka.fetch.max.bytes is not supported"),
        ({"readers": "0"}, "readers is a number from 1 to 200, not 0"),
        ({"readers": "many"}, "not many"),
        ({"failOnDataLoss": "no"}, "true or false"),
    ],
)
def test_a_bad_option_is_named(change: dict[str, str], problem: str) -> None:
    with pytest.raises(OptionError, match=problem):
        read_options({**GOOD, **change})


def test_verdicts_are_read_as_they_were_written(tmp_path: Path) -> None:
    directory = str(tmp_path / "new")
    rows = [
        ("t", 0, 5, 1, "release"),
        ("t", 0, 4, 1, "release"),
        ("t", 0, 6, 2, "release"),
        ("t", 1, 7, 1, "reject"),
        ("gone", 0, 1, 1, "reject"),
    ]
    write_verdicts(directory, 3, rows)
    verdicts, paths = read_verdicts(directory, {"t": TOPIC})
    first = Partition(TOPIC, 0)
    assert verdicts == {
        Verdict.RELEASE: [Delivery(first, 4, 5, 1), Delivery(first, 6, 6, 2)],
        Verdict.REJECT: [Delivery(Partition(TOPIC, 1), 7, 7, 1)],
    }
    assert [Path(path).name for path in paths] == ["3.verdicts.json"]


def test_verdicts_and_their_name_are_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[tuple[bool, bool]] = []

    def fsync(fd: int) -> None:
        done.append((stat.S_ISDIR(os.fstat(fd).st_mode), (tmp_path / "3.verdicts.json").exists()))

    monkeypatch.setattr(os, "fsync", fsync)
    write_verdicts(str(tmp_path), 3, [])
    assert done == [(False, False), (True, True)]


@pytest.mark.parametrize("verdict", [None, "Accept", "drop"])
def test_other_verdicts_are_refused(tmp_path: Path, verdict: str | None) -> None:
    with pytest.raises(VerdictError, match=r"t-0 offset 4: .* is none of accept, release, reject"):
        write_verdicts(str(tmp_path), 1, [("t", 0, 4, 1, verdict)])


def test_a_damaged_file_of_verdicts_is_named(tmp_path: Path) -> None:
    (tmp_path / "1.verdicts.json").write_text('{"release": []')
    with pytest.raises(VerdictError, match=r"1\.verdicts\.json is not a file of verdicts"):
        read_verdicts(str(tmp_path), {})
