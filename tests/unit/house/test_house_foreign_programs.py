"""Programs that tests build: what cannot be fetched is skipped, what does not build fails."""

from pathlib import Path

import pytest

from support import foreign_programs


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(foreign_programs, "CACHE", tmp_path / "cache")
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "main.go").write_text("package main\n")
    return folder


def test_what_does_not_build_fails(source: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match="false failed"):
        foreign_programs._built(source, "*", fetch=["true"], build=["false"])


def test_what_cannot_be_fetched_is_skipped(source: Path) -> None:
    with pytest.raises(pytest.skip.Exception, match="false failed"):
        foreign_programs._built(source, "*", fetch=["false"], build=["true"])


def test_what_is_built_is_kept(source: Path) -> None:
    built = foreign_programs._built(source, "*", fetch=["true"], build=["cp", "main.go", "program"])
    assert (built / "program").read_text() == "package main\n"
    assert foreign_programs._built(source, "*", fetch=["false"], build=["false"]) == built
