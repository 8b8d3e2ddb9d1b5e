"""`barnabas sql test`: statements on given records, in memory, against what must come out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import click

from barnabas.cli.errors import CliError, ExitCode, extra_packages
from barnabas.cli.output import json_option, print_json

if TYPE_CHECKING:
    from barnabas.sql.functions.catalog import Function


@click.command(
    "test",
    epilog="\b\nExamples:\n"
    "  barnabas sql test --sql-file statements.sql --input-file input.json \\\n"
    "    --output-file output.json\n"
    "  barnabas sql test tests.sql\n",
)
@click.argument("tests", nargs=-1, type=click.Path(dir_okay=False))
@click.option(
    "--sql-file", "-s", type=click.Path(dir_okay=False), help="The statements that are tested."
)
@click.option(
    "--input-file",
    "-i",
    type=click.Path(dir_okay=False),
    help='Input records, as {"inputs": [...]}; may be omitted.',
)
@click.option(
    "--output-file",
    "-o",
    type=click.Path(dir_okay=False),
    help='Expected records, as {"outputs": [...]}.',
)
@click.option(
    "--extension-dir",
    "-e",
    type=click.Path(file_okay=False),
    help="Directory of Python files with functions of your own, as ksql.extension.dir.",
)
@json_option
def test_command(
    tests: tuple[str, ...],
    sql_file: str | None,
    input_file: str | None,
    output_file: str | None,
    extension_dir: str | None,
    as_json: bool,
) -> int:
    """Test statements without a server or a broker.

    Either three files as ksqlDB's ksql-test-runner takes them, or TESTS: files of SQL in which
    `--@test: name` begins each test, with INSERT and ASSERT VALUES. Exit code 5 if a test fails.
    """
    with extra_packages("sql", "tests of SQL need"):
        from barnabas.sql.testing.sql_files import FileError
        from barnabas.sql.udf import ExtensionError, load_extensions

    if bool(tests) == (sql_file is not None):
        raise CliError("give --sql-file with --output-file, or files of tests", ExitCode.USAGE)
    try:
        catalog = load_extensions(extension_dir)
        if sql_file is None:
            results = [result for path in tests for result in _run_file(path, catalog)]
        elif output_file is None:
            raise CliError("--sql-file needs --output-file", ExitCode.USAGE)
        else:
            results = [_run_three(sql_file, input_file, output_file, catalog)]
    except (FileError, ExtensionError) as error:
        raise CliError(str(error), ExitCode.USAGE) from error
    for result in results:
        _show(result, as_json)
    is_good = all(result["passed"] for result in results)
    return ExitCode.DONE if is_good else ExitCode.PROBLEMS


def _run_three(
    sql_file: str, input_file: str | None, output_file: str, catalog: Mapping[str, Function]
) -> dict[str, object]:
    from barnabas.sql.testing.sql_files import read_records, run_records

    inputs = [] if input_file is None else read_records(input_file, "inputs")
    outputs = read_records(output_file, "outputs")
    with open(sql_file, encoding="utf-8") as file:
        statements = file.read()
    return _result(sql_file, lambda: run_records(statements, inputs, outputs, catalog))


def _run_file(path: str, catalog: Mapping[str, Function]) -> list[dict[str, object]]:
    from barnabas.sql.testing.sql_files import SqlFileTest, read_tests, run_test

    def run(test: SqlFileTest) -> dict[str, object]:
        return _result(f"{path}: {test.name}", lambda: run_test(test, catalog))

    return [run(test) for test in read_tests(path)]


def _result(name: str, run: Callable[[], object]) -> dict[str, object]:
    from barnabas.schemas.errors import FormatError
    from barnabas.sql.errors import SqlError
    from barnabas.sql.testing.outcome import MismatchError
    from barnabas.sql.testing.sides import SpecError

    start = time.monotonic()
    problem = None
    try:
        run()
    except SqlError as error:
        problem = error.with_statement()
    except (FormatError, MismatchError, SpecError) as error:
        problem = str(error)
    return {
        "test": name,
        "passed": problem is None,
        "problem": problem,
        "ms": round((time.monotonic() - start) * 1000),
    }


def _show(result: dict[str, object], as_json: bool) -> None:
    if as_json:
        print_json(result)
        return
    click.echo(
        f"{'passed' if result['passed'] else 'FAILED'}  {result['test']} ({result['ms']} ms)"
    )
    if result["problem"]:
        click.echo(f"        {result['problem']}", err=True)
