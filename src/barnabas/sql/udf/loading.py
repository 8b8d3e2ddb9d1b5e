"""Finds functions of users: files of a directory, and entry points of installed packages.

Each file is a module of a package of our own making, so that one may import another of the
directory (`from .helpers import …`) and names on `sys.path` mean what they always do. It is run
once in a process. Anyone who can write the files runs code as the server's user: so the directory
and all in it that is read must be ours or root's, and nobody else's to write. Compiled files
(`__pycache__`) are neither read nor written.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import stat
import sys
import traceback
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.metadata import EntryPoint, entry_points
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from barnabas.sql.functions.built_in import functions
from barnabas.sql.functions.catalog import Function
from barnabas.sql.udf.declaring import (
    Declaration,
    DeclarationError,
    declared,
    declared_as,
    declared_below,
    forget,
)
from barnabas.sql.udf.merging import merged

ENTRY_POINTS = "barnabas.sql_functions"
_PREFIX = "_barnabas_sql_extensions_"


class ExtensionError(Exception):
    """Functions of a user cannot be loaded. The message is one line."""


def load_extensions(
    directory: str | None = None, *, packages: Iterable[EntryPoint] | None = None
) -> Mapping[str, Function]:
    """The catalog with the functions of installed packages and of the directory's files.

    `directory` is `ksql.extension.dir`, None or empty for none; `packages` are the entry points of
    those that are installed, if not given. Raises ExtensionError.
    """
    result = functions()
    for entry in _installed() if packages is None else packages:
        declarations, source = _of_package(entry)
        result = _merged(result, declarations, source)
    if directory:
        result = _merged(result, _of_directory(Path(directory)), "")
    return result


def _merged(
    catalog: Mapping[str, Function], declarations: list[Declaration], source: str
) -> dict[str, Function]:
    try:
        return merged(catalog, declarations, source)
    except DeclarationError as error:
        raise ExtensionError(_one_line(str(error))) from error


# --- packages ------------------------------------------------------------------------------------


@cache
def _installed() -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=ENTRY_POINTS))


def _of_package(entry: EntryPoint) -> tuple[list[Declaration], str]:
    """The declarations that an entry point names: a module's, or those of one function or class."""
    try:
        loaded: Any = entry.load()
    except (Exception, SystemExit) as error:
        raise ExtensionError(
            f"the functions of {entry.value} cannot be loaded: {_error_text(error)}"
        ) from error
    if isinstance(loaded, ModuleType):
        declarations = declared_below(loaded.__name__)
    else:
        declarations = declared_as(loaded)
    if not declarations:
        raise ExtensionError(f"{entry.value} declares no functions")
    source = entry.value if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
    return declarations, source


# --- the directory -------------------------------------------------------------------------------


def _of_directory(directory: Path) -> list[Declaration]:
    try:
        root = directory.resolve(strict=True)
        _check_safe(root)
        files = sorted(path for path in root.iterdir() if path.suffix == ".py")
    except OSError as error:
        raise ExtensionError(f"{directory} cannot be read: {error.strerror}") from error
    package = _package(root)
    for file in files:
        if not file.stem.isidentifier():
            raise ExtensionError(f"{file} cannot be a module: its name is not a Python identifier")
        _run(f"{package}.{file.stem}", root)
    return [d for file in files for d in declared(f"{package}.{file.stem}")]


def _package(root: Path) -> str:
    """The private package that stands for the directory."""
    name = _PREFIX + hashlib.sha256(str(root).encode(errors="surrogateescape")).hexdigest()[:16]
    if name not in sys.modules:
        package = ModuleType(name)
        package.__path__ = []
        sys.modules[name] = package
        sys.meta_path.insert(0, _Finder(name, root))
    return name


def _run(module: str, root: Path) -> None:
    try:
        importlib.import_module(module)
    except ExtensionError:
        raise
    except (Exception, SystemExit) as error:
        path, line = _place(error, root)
        where = f"{path or root / (module.rpartition('.')[2] + '.py')}"
        at = f", line {line}" if line else ""
        raise ExtensionError(f"{where}{at}: {_error_text(error)}") from error


class _Finder(MetaPathFinder):
    """Finds the modules of one directory."""

    def __init__(self, package: str, root: Path) -> None:
        self._package = package
        self._root = root

    def find_spec(
        self, fullname: str, path: Any = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, stem = fullname.rpartition(".")
        if package != self._package:
            return None
        file = self._root / f"{stem}.py"
        if not file.exists():
            return None
        _check_file(file, self._root)
        forget(fullname)
        loader = _SourceLoader(fullname, str(file))
        return spec_from_file_location(fullname, file, loader=loader)


class _SourceLoader(SourceFileLoader):
    """Compiles the text each time: a compiled file beside it may be somebody else's."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


# --- safety --------------------------------------------------------------------------------------


def _check_file(file: Path, root: Path) -> None:
    """Raise ExtensionError unless the file, and all links to it, are safe to run."""
    target = file.resolve()
    if not target.is_relative_to(root):
        raise ExtensionError(f"{file} is refused: it is a link that leads out of the directory")
    while target != root:
        _check_safe(target)
        target = target.parent


def _check_safe(path: Path) -> None:
    status = path.stat()
    if status.st_uid not in (os.geteuid(), 0):
        raise ExtensionError(f"{path} is refused: it belongs to neither this user nor root")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ExtensionError(f"{path} is refused: others can write it (chmod go-w)")


# --- messages ------------------------------------------------------------------------------------


def _place(error: BaseException, root: Path) -> tuple[str, int | None]:
    """The deepest line of the directory's files that an error comes from."""
    if isinstance(error, SyntaxError) and error.filename:
        return error.filename, error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    for frame in reversed(frames):
        if Path(frame.filename).is_relative_to(root):
            return frame.filename, frame.lineno
    return "", None


def _error_text(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return f"SyntaxError: {error.msg}"
    if isinstance(error, DeclarationError):
        return _one_line(str(error))
    return _one_line(f"{type(error).__name__}: {error}")


def _one_line(text: str) -> str:
    return " ".join(text.split())
