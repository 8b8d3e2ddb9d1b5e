"""The audit of dependencies: what it reads, and that it never fails without a network."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from unittest import mock

import pytest

PATH = Path(__file__).parents[3] / "tools" / "audit.py"


@pytest.fixture
def audit() -> ModuleType:
    spec = importlib.util.spec_from_file_location("audit", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


REPORT = {
    "dependencies": [
        {"name": "good", "version": "1.0", "vulns": []},
        {"name": "skipped", "skip_reason": "editable"},
        {
            "name": "bad",
            "version": "2.0",
            "vulns": [{"id": "PYSEC-1", "fix_versions": ["2.1"]}, {"id": "X", "fix_versions": []}],
        },
    ]
}


def test_vulnerabilities_are_named(audit: ModuleType) -> None:
    assert audit.vulnerable(json.dumps(REPORT)) == [
        "bad 2.0 has PYSEC-1; fixed in 2.1",
        "bad 2.0 has X; fixed in no version yet",
    ]


@pytest.mark.parametrize(
    ("output", "code", "words"),
    [
        (json.dumps(REPORT), 1, "bad 2.0 has PYSEC-1"),
        (json.dumps({"dependencies": []}), 0, "no known vulnerability"),
        ("", 0, "skipped"),
        ("{}", 0, "skipped"),
    ],
)
def test_outcomes(
    audit: ModuleType, capsys: pytest.CaptureFixture[str], output: str, code: int, words: str
) -> None:
    done = subprocess.CompletedProcess([sys.executable], 1, output, "connection failed")
    with (
        mock.patch.object(importlib.util, "find_spec", return_value=object()),
        mock.patch.object(subprocess, "run", return_value=done),
    ):
        assert audit.main() == code
    assert words in capsys.readouterr().out


def test_without_pip_audit_it_says_so(
    audit: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    with mock.patch.object(importlib.util, "find_spec", return_value=None):
        assert audit.main() == 0
    assert "not installed" in capsys.readouterr().out


ADVISORIES = "# artifact\norg.a:b-c 3.9.1 CVE-1, CVE-2\n"


@pytest.mark.parametrize(
    ("jar", "found"),
    [
        ("org.a_b-c-3.9.0.jar", ["org.a:b-c 3.9.0 has CVE-1, CVE-2; fixed in 3.9.1"]),
        ("org.a_b-c-3.9.1.jar", []),
        ("org.a_b-c-3.10.0.jar", []),
        ("org.a_b-3.9.0.jar", []),
    ],
)
def test_old_jars_are_named(audit: ModuleType, jar: str, found: list[str]) -> None:
    assert audit.vulnerable_jars(f"# table\n0123  {jar}\n", ADVISORIES) == found


def test_the_jars_of_sessions_have_no_known_flaw(audit: ModuleType) -> None:
    for jars in audit.JARS:
        assert audit.vulnerable_jars(jars.read_text(), audit.ADVISORIES.read_text()) == []


def test_an_old_jar_fails_the_audit_without_pip_audit(
    audit: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    jars = tmp_path / "jars.txt"
    jars.write_text("0123  org.apache.kafka_kafka-clients-3.9.0.jar\n")
    monkeypatch.setattr(audit, "JARS", (*audit.JARS, jars))
    with mock.patch.object(importlib.util, "find_spec", return_value=None):
        assert audit.main() == 1
