"""Rules for the source that linters do not know."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "src/barnabas"
MODULE_LINES_MAX = 600
"""A module beyond this wants to be two, unless there is a reason."""
LONGER_FOR_A_REASON: dict[str, str] = {}
"""Modules of `src/barnabas` and their reasons. A module without one is split, and a reason that is
no longer needed goes."""
FOLDER_MODULES_MAX = 25
"""Modules beside each other. A folder beyond this wants inner walls, unless there is a reason."""
WIDER_FOR_A_REASON = {
    "node/log": "functions over one log's state, a module for each idea",
    "node/metadata": "the image and its records, and a node's ways to the controller",
    "sql/server": "a module for each resource of ksqlDB's REST interface",
    "streams": "the names that users import",
}
"""Folders of `src/barnabas` and their reasons, as above."""
MODULE_LINES_MIN = 40
"""A smaller module that only a neighbour imports is a function of its neighbour."""
SMALLER_FOR_A_REASON = {
    "__main__": "what `python -m barnabas` runs",
    "base/addresses": "for nodes and the web server",
    "base/checksum": "for record batches and a node's logs and telemetry",
    "base/errors": "for all rooms",
    "base/event_loop": "for nodes and the registry",
    "base/private_files": "for nodes, commands and Spark",
    "cli/completion": "a command",
    "cli/dev/child_process": "for nodes, services and tests",
    "cli/doctor/findings": "what four modules of checks return",
    "cli/option_sets": "for seven sets of options",
    "cli/reaching": "for all commands that send requests of our own",
    "connect/errors/spark": "the one place that translates Spark's errors; imports pyspark",
    "demo/generators/events": "what three generators make",
    "demo/guardian": "a program of its own, which must start fast",
    "demo/outside": "for four modules of the demo",
    "java/time/units": "for SQL's syntax, formats and runtime",
    "kafka/group_offsets": "for Connect and commands",
    "node/config/removed": "a table, also read by the documentation of settings",
    "node/coordinator/group/group_type": "for all kinds of groups",
    "node/coordinator/group/records": "for all kinds of groups",
    "node/coordinator/group/share/member": "for five modules, of which none imports the others",
    "node/log/errors": "for all that read or write a log",
    "node/loop/pauses": "for all waits of a node",
    "node/metadata/topic_names": "for the controller and the broker's APIs",
    "node/raft/settings": "for the core and what runs it",
    "node/security/principal": "for all that authorize",
    "schemas/data/cache": "for converters and transforms",
    "schemas/errors": "for all formats and their users",
    "sql/functions/built_in": "imports all functions, which import the catalog",
    "sql/runtime/records": "for all steps",
    "streams/errors": "for all of streams, and its commands",
}
"""Modules of `src/barnabas` below that and their reasons, as above."""
IGNORE = re.compile(r"#\s*type:\s*ignore")
IGNORE_WITH_REASON = re.compile(r"#\s*type:\s*ignore\[[a-z, -]+\]\s*#\s*\S+")
UNFINISHED = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b|NotImplementedError")
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]*)(?:#([^)]*))?\)")
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def tracked(*patterns: str) -> list[Path]:
    """Files under version control."""
    command = ["git", "ls-files", "--", *patterns]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).exists()]


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


BY_NAME = re.compile(r"pip3? install[^\n]*\bbarnabas\b(?!-)|['\"`]barnabas\[")
"""An installation from the index, where the name belongs to another project."""


def installs_by_name(line: str) -> bool:
    """Return whether a line says to install our name from the package index."""
    found = BY_NAME.search(line)
    return found is not None and not re.search(r"install (?:-e )?'?\.", line)


def test_nothing_installs_from_the_index() -> None:
    wrong = ("pip install barnabas", "pip install 'barnabas[spark]'", "install `barnabas[sql]`")
    assert all(installs_by_name(line) for line in wrong)
    named_in = {
        f"{named(path)}:{number}: {line.strip()}"
        for path in tracked("src", "docs", "*.md", "deploy", "Makefile", ".ci", "bench", "tools")
        if path.suffix in ("", ".py", ".md", ".sh", ".toml", ".yml", ".yaml", ".sql")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if installs_by_name(line)
    }
    assert not named_in, "use barnabas.base.errors.install_hint, or a path"


def test_modules_do_one_thing() -> None:
    long = {
        str(path.relative_to(PACKAGE)): len(path.read_text().splitlines())
        for path in tracked("src/**/*.py")
    }
    long = {name: lines for name, lines in long.items() if lines > MODULE_LINES_MAX}
    assert {name: lines for name, lines in long.items() if name not in LONGER_FOR_A_REASON} == {}
    assert sorted(LONGER_FOR_A_REASON.keys() - long.keys()) == []


def test_small_modules_have_reasons() -> None:
    small = {
        str(path.relative_to(PACKAGE).with_suffix(""))
        for path in tracked("src/**/*.py")
        if path.name != "__init__.py" and len(path.read_text().splitlines()) < MODULE_LINES_MIN
    }
    assert sorted(small - SMALLER_FOR_A_REASON.keys()) == [], "a function of its neighbour?"
    assert sorted(SMALLER_FOR_A_REASON.keys() - small) == []


def test_folders_have_few_modules() -> None:
    modules = Counter(
        str(path.parent.relative_to(PACKAGE))
        for path in tracked("src/**/*.py")
        if path.name != "__init__.py"
    )
    wide = {name: count for name, count in modules.items() if count > FOLDER_MODULES_MAX}
    assert {name: count for name, count in wide.items() if name not in WIDER_FOR_A_REASON} == {}
    assert sorted(WIDER_FOR_A_REASON.keys() - wide.keys()) == []


def imported_at_once(body: list[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports that run when a module is imported."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If):
            if "TYPE_CHECKING" not in ast.unparse(node.test):
                yield from imported_at_once(node.body)
            yield from imported_at_once(node.orelse)
        elif isinstance(node, ast.Try):
            yield from imported_at_once(node.body)
            for handler in node.handlers:
                yield from imported_at_once(handler.body)


def imported_anywhere(body: list[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """All imports: those in functions and for types too."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        for name in ("body", "orelse", "finalbody"):
            yield from imported_anywhere(getattr(node, name, []))
        for part in (*getattr(node, "handlers", []), *getattr(node, "cases", [])):
            yield from imported_anywhere(part.body)


@dataclass(slots=True)
class Facts:
    """What the rules ask of a module: its tree would take much memory, and long to make again."""

    imports: tuple[list[ast.Import | ast.ImportFrom], ...]
    """Those that run when it is imported, and all."""
    silent: list[str]
    """What says nothing about itself: public names, and "" if the module does not."""


@cache
def facts(text: str) -> Facts:
    """Parse a module."""
    module = ast.parse(text)
    silent = [
        node.name
        for node in module.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and not (node.name.startswith("_") or node.name == "main")
        and ast.get_docstring(node) is None
        and len(node.body) > 1
        and not described(node)
    ]
    if ast.get_docstring(module) is None and text.strip():
        silent.append("")
    imports = imported_at_once(module.body), imported_anywhere(module.body)
    return Facts(tuple(map(list, imports)), silent)


def imports_between_modules(package: Path, *, anywhere: bool = False) -> dict[str, set[str]]:
    """The modules of a package that each of its modules imports: at module level, or anywhere."""
    paths = {
        ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(
            ".__init__"
        ): path
        for path in package.rglob("*.py")
    }
    imports: dict[str, set[str]] = {}
    for name, path in paths.items():
        imported: set[str] = set()
        for node in facts(path.read_text()).imports[anywhere]:
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif node.module:
                modules = {f"{node.module}.{alias.name}" for alias in node.names}
                imported |= modules & paths.keys() or {node.module}
        imports[name] = imported & paths.keys() - {name}
    return imports


def cycle(imports: dict[str, set[str]]) -> list[str]:
    """Modules of which each imports the next, and the last one the first; empty without a cycle."""
    try:
        list(TopologicalSorter(imports).static_order())
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_modules_import_each_other(tmp_path: Path) -> None:
    package = tmp_path / "house"
    package.mkdir()
    (package / "a.py").write_text("from house import b\n")
    (package / "b.py").write_text(
        "try:\n    from house.c import x\nexcept ImportError:\n    x = 1\n"
    )
    (package / "c.py").write_text("import house.a\n")
    assert len(cycle(imports_between_modules(package))) == 4
    (package / "c.py").write_text("if TYPE_CHECKING:\n    import house.a\n")
    assert cycle(imports_between_modules(package)) == []
    assert len(cycle(imports_between_modules(package, anywhere=True))) == 4
    (package / "c.py").write_text("def later():\n    import house.a\n")
    assert cycle(imports_between_modules(package)) == []
    assert len(cycle(imports_between_modules(package, anywhere=True))) == 4
    assert cycle(imports_between_modules(PACKAGE)) == []


def test_no_circles_by_imports_for_types_and_in_functions() -> None:
    """Python runs them, but a reader of one module needs all of its circle."""
    imports = imports_between_modules(PACKAGE, anywhere=True)
    # The package's own face, `barnabas.Cluster`, is loaded when it is first asked for.
    imports["barnabas"].remove("barnabas.app.cluster")
    assert cycle(imports) == []


def test_modules_and_public_names_say_what_they_are() -> None:
    silent = [
        f"{named(path)}:{name}"
        for path in tracked("src/**/*.py")
        for name in facts(path.read_text()).silent
        if not name or "protocol/messages" not in named(path)
    ]
    assert silent == []


def described(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a decorator adds it to the catalog of SQL functions, with a description."""
    return any(
        isinstance(decorator, ast.Call)
        and isinstance(decorator.func, ast.Name)
        and decorator.func.id.lstrip("_") in ("scalar", "table_function", "aggregate")
        for decorator in node.decorator_list
    )


def test_ignored_types_have_a_code_and_a_reason() -> None:
    bare = [
        f"{named(path)}:{number}"
        for path in tracked("src/**/*.py")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if IGNORE.search(line) and not IGNORE_WITH_REASON.search(line)
    ]
    assert bare == []


def test_nothing_is_left_unfinished() -> None:
    found = [
        f"{named(path)}:{number}"
        for path in tracked("src/**/*.py", "bench/*.py", "tools/*.py")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if UNFINISHED.search(line)
    ]
    assert found == []


def test_test_modules_have_names_of_their_own() -> None:
    names = Counter(path.name for path in tracked("tests/**/*.py") if path.name != "conftest.py")
    assert [name for name, count in names.items() if count > 1 and name != "__init__.py"] == []


def test_no_property_fails_for_drawing_slowly() -> None:
    """A busy machine draws slowly. A list of a property's own replaces that of the profile."""
    assert HealthCheck.too_slow in settings.default.suppress_health_check
    lists = [
        (path.name, named)
        for path in (ROOT / "tests").rglob("test_*.py")
        for named in re.findall(r"suppress_health_check=(\[.*?\])", path.read_text(), re.DOTALL)
    ]
    assert lists
    assert not [name for name, named in lists if "too_slow" not in named]


def test_links_in_documents_lead_somewhere() -> None:
    broken = [
        f"{named(path)}: {target}#{heading}"
        for path in tracked("*.md", "docs/**/*.md")
        for target, heading in LINK.findall(path.read_text())
        if "://" not in target and not leads_somewhere(path, target, heading)
    ]
    assert broken == []


def leads_somewhere(path: Path, target: str, heading: str) -> bool:
    """Return whether a link of a document leads to a file, and to a heading if it names one."""
    document = path.parent / target if target else path
    if not document.exists() or not heading or document.suffix != ".md":
        return document.exists()
    titles = HEADING.findall(FENCED.sub("", document.read_text()))
    return heading in {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in titles}


def test_large_files_stay_out() -> None:
    large = [named(path) for path in tracked(".") if path.stat().st_size > 2_000_000]
    assert large == []
