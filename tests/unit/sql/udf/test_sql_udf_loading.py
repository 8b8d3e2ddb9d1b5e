"""Functions from the files of a directory and from installed packages."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import pytest

from barnabas.sql.functions.built_in import functions
from barnabas.sql.server.details import described_function
from barnabas.sql.udf import ExtensionError, load_extensions, udf
from support.sql_udf import value_of

IMPORT = "from barnabas.sql.udf import udf, udaf, udtf\n"

DOUBLE = f"""{IMPORT}
@udf("(a BIGINT) -> BIGINT")
def double(a): return a * 2

@udf("(a STRING) -> STRING", name="double")
def double(a): return a + a
"""

Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(**files: str) -> str:
        directory = tmp_path / "ext"
        directory.mkdir(mode=0o755)
        for name, text in files.items():
            file = directory / f"{name}.py"
            file.write_text(text)
            file.chmod(0o644)
        return str(directory)

    return written


def test_functions_of_files_are_beside_ours(write: Write) -> None:
    before = set(functions())
    catalog = load_extensions(write(double=DOUBLE), packages=())
    assert catalog.keys() - before == {"DOUBLE"}
    assert (value_of("DOUBLE(2)", catalog), value_of("DOUBLE('a')", catalog)) == (4, "aa")
    assert set(functions()) == before


def test_files_run_once_under_a_name_of_their_own(write: Write) -> None:
    known = set(sys.modules)
    count = "import os\nos.environ['BARNABAS_UDF'] = os.environ.get('BARNABAS_UDF', '') + 'x'\n"
    directory = write(json=count + DOUBLE)
    try:
        first = load_extensions(directory, packages=())
        second = load_extensions(directory + "/", packages=())
        assert os.environ.pop("BARNABAS_UDF") == "x"
    finally:
        os.environ.pop("BARNABAS_UDF", None)
    assert first["DOUBLE"] == second["DOUBLE"]
    assert sys.modules["json"].__file__ != f"{directory}/json.py"
    assert all(name.startswith("_barnabas_sql_") for name in set(sys.modules) - known)
    assert not (Path(directory) / "__pycache__").exists()


def test_compiled_files_are_not_read(write: Write) -> None:
    directory = write(double=DOUBLE)
    cache = Path(directory) / "__pycache__"
    cache.mkdir()
    (cache / f"double.{sys.implementation.cache_tag}.pyc").write_bytes(b"no code")
    assert "DOUBLE" in load_extensions(directory, packages=())


def test_files_import_each_other(write: Write) -> None:
    directory = write(
        a=f"{IMPORT}from .helpers import twice\nudf('(a BIGINT) -> BIGINT', name='TWICE')(twice)\n",
        helpers="def twice(a): return a * 2\n",
    )
    assert value_of("TWICE(2)", load_extensions(directory, packages=())) == 4


def test_our_functions_take_more_types(write: Write) -> None:
    text = f'{IMPORT}\n@udf("(a BIGINT, b BOOLEAN) -> BIGINT")\ndef len(a, b): return a\n'
    catalog = load_extensions(write(more=text), packages=())
    assert value_of("LEN(7, true)", catalog) == 7
    assert value_of("LEN('abc')", catalog) == 3
    assert len(functions()["LEN"].scalars) == len(catalog["LEN"].scalars) - 1


HALF = f'{IMPORT}\n@udf("(a {{}}) -> BIGINT", name="HALF")\ndef f(a): return 1\n'

BAD = [
    ("syntax", {"bad": "x = 1\nif\n"}, "bad.py, line 2: SyntaxError: invalid syntax"),
    ("error", {"bad": "x = 1\ny = x / 0\n"}, "bad.py, line 2: ZeroDivisionError: division by zero"),
    ("exit", {"bad": "import sys\nsys.exit(1)\n"}, "bad.py, line 2: SystemExit: 1"),
    ("missing", {"bad": "from .other import x\n"}, "bad.py, line 1: ModuleNotFoundError: "),
    ("helper", {"a": "from . import bad\n", "bad": "1/0\n"}, "bad.py, line 1: ZeroDivisionError"),
    ("signature", {"bad": HALF.format("WORD")}, "bad.py, line 3: the signature (a WORD) -> BIGINT"),
    (
        "twice",
        {"a": HALF.format("INT"), "bad": HALF.format("INT").replace("(a ", "(b ")},
        "bad.py, line 3: HALF with those parameters is there already ({}/a.py, line 3): (b INT)",
    ),
    (
        "variables",
        {"bad": HALF.format("ARRAY<T>") + HALF.format("ARRAY<U>").replace(IMPORT, "")},
        "bad.py, line 6: HALF with those parameters is there already",
    ),
    (
        "built in",
        {"bad": HALF.format("STRING").replace("HALF", "ucase")},
        "bad.py, line 3: UCASE with those parameters is there already (built in): (a STRING)",
    ),
    (
        "kinds",
        {"bad": HALF.format("BOOLEAN").replace("HALF", "sum")},
        "bad.py, line 3: SUM is an aggregate function already",
    ),
    ("name", {"a-b": DOUBLE}, "a-b.py cannot be a module"),
]


@pytest.mark.parametrize(
    ("files", "message"), [case[1:] for case in BAD], ids=[case[0] for case in BAD]
)
def test_errors_name_file_and_line(write: Write, files: dict[str, str], message: str) -> None:
    directory = write(**files)
    with pytest.raises(ExtensionError) as caught:
        load_extensions(directory, packages=())
    text = str(caught.value)
    assert text.startswith(f"{directory}/{message.replace('{}', directory)}")
    assert "\n" not in text


def test_a_file_that_is_mended_is_read_again(write: Write) -> None:
    directory = write(double=DOUBLE + "1/0\n")
    with pytest.raises(ExtensionError, match="ZeroDivisionError"):
        load_extensions(directory, packages=())
    (Path(directory) / "double.py").write_text(DOUBLE)
    assert len(load_extensions(directory, packages=())["DOUBLE"].scalars) == 2


def test_a_directory_that_is_not_there() -> None:
    with pytest.raises(ExtensionError, match=r"/no/such cannot be read: No such file"):
        load_extensions("/no/such", packages=())


# --- who may write -------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777])
@pytest.mark.parametrize("name", ["", "double.py"])
def test_what_others_can_write_is_refused(write: Write, mode: int, name: str) -> None:
    directory = write(double="raise SystemExit('run')")
    path = Path(directory, name)
    path.chmod(mode)
    with pytest.raises(ExtensionError) as caught:
        load_extensions(directory, packages=())
    assert str(caught.value) == f"{path} is refused: others can write it (chmod go-w)"


def test_what_belongs_to_somebody_else_is_refused(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = write(double="raise SystemExit('run')")
    if os.geteuid() == 0:
        os.chown(directory, 12345, 12345)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(ExtensionError, match="belongs to neither this user nor root"):
        load_extensions(directory, packages=())


def test_links_stay_in_the_directory(write: Write, tmp_path: Path) -> None:
    directory = Path(write())
    inner = directory / "..data"
    inner.mkdir(mode=0o755)
    for folder in (inner, tmp_path):
        (folder / "linked.py").write_text(DOUBLE)
        (folder / "linked.py").chmod(0o644)
    link = directory / "double.py"
    link.symlink_to(inner / "linked.py")
    inner.chmod(0o777)
    with pytest.raises(ExtensionError, match=r"\.\.data is refused: others can write it"):
        load_extensions(str(directory), packages=())
    inner.chmod(0o755)
    assert "DOUBLE" in load_extensions(str(directory), packages=())
    other = directory / "other.py"
    other.symlink_to(tmp_path / "linked.py")
    with pytest.raises(ExtensionError, match="link that leads out of the directory"):
        load_extensions(str(directory), packages=())


# --- packages ------------------------------------------------------------------------------------


@udf("(a BIGINT) -> BIGINT", name="ENTERED")
def entered(a: int) -> int:
    return a


def entry(value: str) -> EntryPoint:
    return EntryPoint("mine", value, "barnabas.sql_functions")


@pytest.mark.parametrize("value", [__name__, f"{__name__}:entered"])
def test_entry_points_name_modules_and_functions(value: str) -> None:
    catalog = load_extensions(packages=[entry(value)])
    assert value_of("ENTERED(3)", catalog) == 3
    assert catalog["ENTERED"].path == value


def test_entry_points_that_give_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "barnabas_empty_package", ModuleType("barnabas_empty_package"))
    with pytest.raises(ExtensionError, match="barnabas_empty_package declares no functions"):
        load_extensions(packages=[entry("barnabas_empty_package")])
    with pytest.raises(ExtensionError, match="functions of no_such_module cannot be loaded: "):
        load_extensions(packages=[entry("no_such_module")])


# --- DESCRIBE FUNCTION ---------------------------------------------------------------------------


def test_description(write: Write) -> None:
    text = f"""{IMPORT}
@udf("(price DECIMAL, rate DOUBLE...) -> DECIMAL(12, 2)", author="Ann", version="1.2",
     description="With tax.", category="SHOP", parameters={{"rate": "of each tax"}})
def with_tax(price, *rates): return price
"""
    directory = write(shop=text)
    catalog = load_extensions(directory, packages=())
    assert catalog["WITH_TAX"].category == "SHOP"
    assert described_function(catalog["WITH_TAX"]) == {
        "name": "WITH_TAX",
        "description": "With tax.",
        "author": "Ann",
        "version": "1.2",
        "path": f"{directory}/shop.py",
        "type": "SCALAR",
        "functions": [
            {
                "arguments": [
                    {"name": "price", "type": "DECIMAL", "description": "", "isVariadic": False},
                    {
                        "name": "rate",
                        "type": "DOUBLE",
                        "description": "of each tax",
                        "isVariadic": True,
                    },
                ],
                "returnType": "DECIMAL(12, 2)",
                "description": "With tax.",
            }
        ],
    }
