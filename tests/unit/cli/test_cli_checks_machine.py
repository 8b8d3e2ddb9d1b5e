"""What `barnabas doctor` says about this machine."""

from __future__ import annotations

import os
import resource
from collections import namedtuple
from pathlib import Path

import pytest

from barnabas.cli.doctor import machine as checks_machine
from barnabas.cli.doctor.findings import Finding, Level, ok
from barnabas.cli.doctor.machine import (
    check_directory,
    check_machine,
    check_node,
    check_properties,
    file_system_of,
)
from barnabas.node.config.node_config import NodeConfig

StatVfs = namedtuple("StatVfs", ["f_bavail", "f_frsize", "f_blocks"])


def levels(findings: list[Finding], check: str) -> list[Level]:
    return [finding.level for finding in findings if finding.check == check]


def formatted(directory: Path) -> Path:
    directory.mkdir(exist_ok=True)
    (directory / "meta.properties").touch()
    return directory


def node(directory: Path, **values: str) -> NodeConfig:
    properties = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": "1@localhost:9093",
        "log.dirs": str(directory),
    }
    return NodeConfig.from_properties({**properties, **values})


def test_this_machine_can_run_a_node() -> None:
    findings = list(check_machine())
    assert levels(findings, "python") == levels(findings, "packages") == [Level.OK]
    assert Level.FAULT not in [finding.level for finding in findings]


def test_a_good_directory(tmp_path: Path) -> None:
    findings = list(check_directory(str(formatted(tmp_path))))
    assert Level.FAULT not in levels(findings, "directory")
    assert len(levels(findings, "disk space")) == 1


def test_directories_that_cannot_be_used(tmp_path: Path) -> None:
    (missing,) = check_directory(str(tmp_path / "missing"))
    assert (missing.level, missing.advice) == (Level.FAULT, "run barnabas storage format")
    findings = list(check_directory(str(tmp_path)))
    assert levels(findings, "directory")[0] is Level.FAULT


def test_a_disk_that_is_nearly_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: StatVfs(10, 4096, 1 << 30))
    findings = list(check_directory(str(formatted(tmp_path))))
    assert levels(findings, "disk space") == [Level.FAULT]


def test_few_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    assert levels(list(check_machine()), "open files") == [Level.NOTE]
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 65_536))
    assert levels(list(check_machine()), "open files") == [Level.OK]


def test_a_node(tmp_path: Path) -> None:
    findings = list(check_node(node(formatted(tmp_path))))
    assert levels(findings, "configuration") == [Level.OK]
    assert levels(findings, "durability") == [Level.NOTE]
    assert levels(findings, "port") == [Level.NOTE]


def test_a_node_that_flushes_and_has_a_key_without_effect(tmp_path: Path) -> None:
    values = {
        "log.flush.interval.messages": "1",
        "follower.fetch.last.tiered.offset.enable": "true",
    }
    findings = list(check_node(node(formatted(tmp_path), **values)))
    assert levels(findings, "durability") == []
    assert levels(findings, "configuration") == [Level.NOTE]


def test_a_file_that_no_node_can_start_with(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("process.roles=broker,controller\n")
    (finding,) = check_properties(str(path))
    assert finding.level is Level.FAULT
    assert finding.detail.startswith(f"{path}: node.id: must be set")


def test_a_directory_that_a_restart_may_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "isdir", lambda _: True)
    monkeypatch.setattr(checks_machine, "_space", lambda _: ok("disk space", ""))
    for directory, count in (("/tmp/kafka-logs", 1), ("/var/lib/tmp/kafka", 0)):
        found = [text.detail for text in check_directory(directory) if "emptied" in text.detail]
        assert len(found) == count, directory


def test_file_systems() -> None:
    assert file_system_of("/proc/self") == "proc"
    assert file_system_of("/")
