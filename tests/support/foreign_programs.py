"""Clients in JavaScript and Go, built once from `support/node` and `support/go`; jars from Maven.

npm and go fetch their dependencies at first use, and keep them in `.cache`. Where node, npm
or go is absent, or its packages cannot be fetched, their tests are skipped and say so. A program
that does not build fails them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

CACHE = Path(__file__).parents[2] / ".cache"
SOURCES = Path(__file__).parent
BUILD_TIMEOUT_S = 600.0
GO_QUICKLY = "-gcflags=all=-N -l -dwarf=false"
"""Nothing optimized or inlined, of Go's own library too: two thirds of the time of a first build.
The programs run for seconds."""


def node_program(name: str) -> Path:
    """A program of `support/node` with its packages beside it; run it with `node`."""
    _need("node", "npm")
    source = SOURCES / "node"
    install = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"]
    built = _built(source, "package.json", fetch=install)
    return Path(shutil.copy(source / name, built))


def go_program(folder: str) -> Path:
    """The binary of a module of `support/go`."""
    _need("go")
    build = ["go", "build", GO_QUICKLY, "-o", "program", "."]
    source = SOURCES / "go" / folder
    return _built(source, "*", fetch=["go", "mod", "download"], build=build) / "program"


def go_suite(folder: str, package: str, *insertions: Insertion) -> tuple[Path, Path]:
    """The compiled tests of a package that a module of `support/go` imports, and its sources.

    With insertions, which are all into one module, they are those of a copy of that, as Go's
    overlays cannot replace files in its cache of modules.
    """
    _need("go")
    built = _built(
        SOURCES / "go" / folder,
        "*",
        fetch=["go", "mod", "download"],
        build=["go", "test", "-c", "-vet=off", "-o", "program", package],
        insertions=insertions,
    )
    find = ["go", "list", "-f", "{{.Dir}}", package]
    found = subprocess.run(find, cwd=built, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S)
    if found.returncode:
        pytest.skip(f"{' '.join(find)} failed: {found.stderr[-2000:]}")
    return built / "program", Path(found.stdout.strip())


def maven_jars(pom: Path, folder: Path) -> Path:
    """The folder of the jars that a POM names, fetched once; skips where that is impossible."""
    if not folder.exists():
        _need("mvn")
        partial = folder.with_name(f"{folder.name}.{os.getpid()}")
        copy = ["dependency:copy-dependencies", f"-DoutputDirectory={partial}"]
        fetch = ["mvn", "--batch-mode", "--quiet", "-f", str(pom), *copy]
        if fault := _fault(fetch, pom.parent):
            pytest.skip(fault)
        with contextlib.suppress(OSError):  # another process was faster
            partial.rename(folder)
    return folder


@dataclass(frozen=True)
class Insertion:
    """A text that is put into a file of a module of Go, after another that is there once."""

    module: str
    file: str
    after: str
    text: str

    def make(self, folder: Path) -> None:
        """Let the module there require a copy beside it, and put the text into that."""
        copy = folder / "changed"
        if not copy.exists():
            found = _go("list", "-m", "-f", "{{.Dir}}", self.module, cwd=folder)
            shutil.copytree(found, copy, copy_function=shutil.copyfile)
            for directory, _, _ in os.walk(copy):
                os.chmod(directory, 0o755)
            _go("mod", "edit", "-replace", f"{self.module}=./changed", cwd=folder)
        path = copy / self.file
        whole = path.read_text()
        assert whole.count(self.after) == 1, f"{self.file} has changed"
        path.write_text(whole.replace(self.after, self.after + self.text))


def _go(*arguments: str, cwd: Path) -> str:
    done = subprocess.run(
        ["go", *arguments], cwd=cwd, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def _need(*programs: str) -> None:
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        pytest.skip(f"needs {' and '.join(missing)}")


def _built(
    source: Path,
    pattern: str,
    *,
    fetch: Sequence[str],
    build: Sequence[str] = (),
    insertions: Sequence[Insertion] = (),
) -> Path:
    """A folder with copies of the sources in which both commands have succeeded, once for all."""
    files = sorted(source.glob(pattern))
    digest = hashlib.sha256(b"".join(file.name.encode() + file.read_bytes() for file in files))
    digest.update(repr(insertions).encode() if insertions else b"")
    built = CACHE / f"{source.name}-{digest.hexdigest()[:16]}"
    if not built.exists():
        CACHE.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="building-", dir=CACHE) as folder:
            for file in files:
                shutil.copy(file, folder)
            if fault := _fault(fetch, folder):
                pytest.skip(fault)
            for insertion in insertions:
                insertion.make(Path(folder))
            if build and (fault := _fault(build, folder)):
                pytest.fail(fault)
            _keep(Path(folder), built)
    return built


def _fault(command: Sequence[str], folder: str | Path) -> str:
    """Return what a command says that fails; nothing of one that succeeds."""
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S
    )
    return (
        f"{' '.join(command)} failed: {(done.stderr or done.stdout)[-2000:]}"
        if done.returncode
        else ""
    )


def _keep(folder: Path, built: Path) -> None:
    """Another process of tests may have been faster."""
    try:
        os.rename(folder, built)
        folder.mkdir()  # for its owner, who removes it
    except OSError:
        if not built.exists():
            raise


def output_of(command: Sequence[str | Path], timeout_s: float) -> str:
    """Return what a program prints; fails with what it says if it does."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s)
    assert done.returncode == 0, done.stderr
    return done.stdout
