"""`barnabas sql` against a server that answers as ksqlDB documents."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.base.private_files import state_directory
from barnabas.sql.shell.client import KsqlClient
from barnabas.sql.shell.commands import Commands
from barnabas.sql.shell.completion import Names
from barnabas.sql.shell.console import Console
from barnabas.sql.shell.interactive import Loop, PlainReader
from barnabas.sql.shell.shell import Session, Shell
from support.cli import Result, run_cli
from support.fake_sql_server import FOR_EVER, FakeSqlServer, Http2SqlServer
from support.patience import PATIENCE_S

DONE = {
    "@type": "currentStatus",
    "statementText": "CREATE …;",
    "commandId": "stream/S/create",
    "commandStatus": {"status": "SUCCESS", "message": "Stream created", "queryId": None},
    "commandSequenceNumber": 7,
    "warnings": [],
}
STREAMS = {"@type": "streams", "statementText": "SHOW STREAMS;", "streams": [], "warnings": []}
ROWS = [
    '[{"header":{"queryId":"q","schema":"`ID` INTEGER, `NAME` STRING"}},\n{"row":{"col',
    'umns":[1,"one"]}},\n',
    '{"row":{"columns":[2,null],"tombstone":true}},\n{"finalMessage":"Limit Reached"}]',
]


def refusal(message: str, statement: str, entities: tuple[Any, ...] = ()) -> tuple[int, Any]:
    return 400, {
        "@type": "statement_error",
        "error_code": 40001,
        "message": message,
        "statementText": statement,
        "entities": list(entities),
    }


@pytest.fixture
def server() -> Iterator[FakeSqlServer]:
    with FakeSqlServer() as fake:
        yield fake


def sql(server: FakeSqlServer, *arguments: str, stdin: bytes = b"") -> Result:
    return run_cli("sql", "--server", server.url, *arguments, stdin=stdin)


def test_a_statement_and_its_answer(server: FakeSqlServer) -> None:
    server.answers["CREATE STREAM s;"] = (200, [DONE])
    result = sql(server, "-e", "CREATE STREAM s;")
    assert (result.code, result.err) == (0, "")
    assert " Stream created" in result.lines


def test_each_statement_waits_for_those_before_it(server: FakeSqlServer) -> None:
    server.answers["CREATE STREAM s;"] = (200, [DONE])
    sql(server, "-e", "CREATE STREAM s; SHOW STREAMS;", "-e", "SHOW TABLES")
    assert [(asked["ksql"].split("\n")[0], asked.get("commandSequenceNumber"))
            for asked in server.asked] == [
        ("CREATE STREAM s;", None),
        ("SHOW STREAMS;", 7),
        ("SHOW TABLES", 7),
    ]  # fmt: skip


def test_documents_are_one_a_line(server: FakeSqlServer) -> None:
    server.answers["SHOW STREAMS;"] = (200, [STREAMS])
    server.answers["SELECT * FROM s;"] = (200, ROWS)
    result = sql(server, "--json", "-e", "SET 'a'='b'; SHOW STREAMS; SELECT * FROM s;")
    assert [json.loads(line) for line in result.lines] == [
        STREAMS,
        {"ID": 1, "NAME": "one"},
        {"ID": 2, "NAME": None, "@tombstone": True},
    ]


def test_rows_of_a_query_are_drawn_as_they_come(server: FakeSqlServer) -> None:
    server.answers["SELECT * FROM s;"] = (200, ROWS)
    result = sql(server, "-e", "SELECT * FROM s;")
    cells = [[c.strip() for c in line.split("|")[1:-1]] for line in result.lines if "|" in line]
    assert cells == [["ID", "NAME"], ["1", "one"], ["2", "<TOMBSTONE>"]]
    assert result.lines[-2:] == ["Limit Reached", "Query terminated"]


def test_lines_of_print_are_shown(server: FakeSqlServer) -> None:
    server.answers["PRINT t LIMIT 1;"] = (200, ["Key format: JSON\nrowtime: ", "1, key: 2\n"])
    result = sql(server, "-e", "PRINT t LIMIT 1;")
    assert result.lines == ["Key format: JSON", "rowtime: 1, key: 2", "Topic printing ceased"]
    assert server.asked[0]["path"] == "/query"


def test_properties_and_variables_go_with_statements(server: FakeSqlServer) -> None:
    text = """
        SET 'auto.offset.reset' = 'earliest'; DEFINE name = 'x'; SET 'gone' = '${name}';
        UNSET 'gone'; UNDEFINE given; SHOW STREAMS; SELECT * FROM ${name};
    """
    server.answers["SELECT * FROM ${name};"] = (200, ROWS)
    result = sql(server, "--define", "given=1", "--define", "kept=2", "-e", text)
    assert result.code == 0, result.err
    for asked in server.asked:
        assert asked["streamsProperties"] == {"auto.offset.reset": "earliest"}
        assert asked["sessionVariables"] == {"name": "x", "kept": "2"}
    assert "Successfully unset local property 'gone' (value was 'x')." in result.lines


def test_a_property_that_cannot_be_set_is_refused(server: FakeSqlServer) -> None:
    server.answers["/is_valid_property/bad"] = (400, {"error_code": 40000, "message": "No bad."})
    result = sql(server, "-e", "SET 'bad' = '1'; SHOW STREAMS;")
    assert (result.code, result.err) == (1, "barnabas: No bad.\n")
    assert not server.asked


def test_the_place_of_an_error_is_shown_and_the_rest_left_out(server: FakeSqlServer) -> None:
    statement = "SHOW NONSENSE;"
    server.answers[statement] = refusal("line 1:6: Syntax Error", statement)
    result = sql(server, "-e", f"{statement} SHOW STREAMS;")
    assert result.code == 1
    assert result.err.splitlines() == [
        "  SHOW NONSENSE;",
        "       ^^^^^^^^",
        "barnabas: line 1:6: Syntax Error",
    ]
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("sent", "told"),
    [("SHOW\n BAD;", " BAD;"), ("SHOW\n ${what};", "SHOW\n BAD;")],
)
def test_places_count_from_what_was_sent_or_became_of_it(
    server: FakeSqlServer, sent: str, told: str
) -> None:
    server.answers[sent] = refusal("line 2:2: no", told)
    assert sql(server, "-e", sent).err.splitlines()[:2] == ["   BAD;", "   ^^^"]


def test_a_server_of_http2_alone() -> None:
    with Http2SqlServer() as server:
        result = run_cli("sql", "--server", server.url, "-e", "SHOW STREAMS;")
        assert (result.code, result.err) == (0, "")
        assert " Stream Name" in result.text


def test_what_was_done_before_an_error_is_shown(server: FakeSqlServer) -> None:
    server.answers["SHOW STREAMS;"] = refusal("no", "SHOW STREAMS;", (DONE,))
    result = sql(server, "--json", "-e", "SHOW STREAMS;")
    assert (result.code, result.json) == (1, DONE)
    assert json.loads(result.err) == {"error": "no", "exit_code": 1}


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        ((200, [{**DONE, "commandStatus": {"status": "ERROR", "message": "broken"}}]), 1, "broken"),
        ((503, {"error_code": 50301, "message": "not ready"}), 1, "not ready"),
        ((502, "<html>proxy</html>"), 1, "HTTP status 502"),
        ((200, {"unexpected": 1}), 0, ""),
    ],
)
def test_answers_of_servers_in_trouble(
    server: FakeSqlServer, answer: tuple[int, Any], code: int, words: str
) -> None:
    server.answers["SHOW STREAMS;"] = answer
    result = sql(server, "-e", "SHOW STREAMS;")
    assert result.code == code
    assert words in result.err


@pytest.mark.parametrize(
    "part",
    [
        '{"errorMessage":{"@type":"generic_error","error_code":50000,"message":"it broke"}}]',
        '{"@type":"generic_error","error_code":50000,"message":"it broke"}]',
        '{"errorMessage":"it broke"}]',
    ],
)
def test_a_query_can_break_after_its_first_row(server: FakeSqlServer, part: str) -> None:
    server.answers["SELECT * FROM s;"] = (200, [*ROWS[:2], part])
    result = sql(server, "-e", "SELECT * FROM s;")
    assert (result.code, result.err) == (1, "barnabas: it broke\n")
    assert any("one" in line for line in result.lines)


def test_an_answer_that_stops_half_way(server: FakeSqlServer) -> None:
    server.answers["SELECT * FROM s;"] = (200, ROWS[:1])
    result = sql(server, "-e", "SELECT * FROM s;")
    assert (result.code, "in the middle of its answer" in result.err) == (3, True)


def test_files_and_standard_input_are_scripts(server: FakeSqlServer, tmp_path: Path) -> None:
    (tmp_path / "inner.sql").write_text("SHOW TOPICS;")
    script = tmp_path / "outer.sql"
    script.write_text(f"-- a comment\nSHOW TABLES;\nRUN SCRIPT '{tmp_path}/inner.sql';\n")
    assert sql(server, "-f", str(script)).code == 0
    assert sql(server, stdin=b"SHOW QUERIES").code == 0
    assert [asked["ksql"].strip("\n;") for asked in server.asked] == [
        "SHOW TABLES",
        "SHOW TOPICS",
        "SHOW QUERIES",
    ]


def test_a_script_that_runs_itself_ends(server: FakeSqlServer, tmp_path: Path) -> None:
    script = tmp_path / "self.sql"
    script.write_text(f"RUN SCRIPT '{script}';")
    result = sql(server, "-f", str(script))
    assert (result.code, "deep" in result.err) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("-e", "RUN SCRIPT 'nowhere.sql';"), 4, "nowhere.sql"),
        (("-f", "nowhere.sql"), 4, "nowhere.sql"),
        (("--define", "x", "-e", ";"), 2, "NAME=VALUE"),
        (("--server", "127.0.0.1:1", "-e", "SHOW STREAMS;"), 3, "127.0.0.1:1 (connection refused)"),
        (("--server", "ftp://x", "-e", "SHOW STREAMS;"), 1, "not the address of a server"),
        (("-e", "UNSET 'never';"), 1, "never set"),
        (("-e", "SET nonsense;"), 1, "line 1:5"),
    ],
)
def test_exit_codes(
    server: FakeSqlServer, arguments: tuple[str, ...], code: int, words: str
) -> None:
    result = sql(server, *arguments)
    assert result.code == code
    assert words in result.err


def test_the_user_is_sent(server: FakeSqlServer) -> None:
    sql(server, "--user", "ann:se:cret", "-e", "SHOW STREAMS;")
    assert server.authorizations == ["Basic YW5uOnNlOmNyZXQ="]


class World:
    """A shell at a terminal that types what it is given."""

    def __init__(self, server: FakeSqlServer) -> None:
        self.shown: list[str] = []
        self.errors: list[str] = []
        self.client = KsqlClient(server.url)
        self.console = Console(self.shown.append, self.errors.append, width=41)
        self.shell = Shell(self.client, self.console, Session())
        self.names = Names(self.client)

    def connect(self, address: str) -> None:
        self.shell.client = self.names.client = KsqlClient(address)

    def type(self, *lines: str | type[BaseException]) -> list[str]:
        waiting = iter(lines)

        def read(prompt: str) -> str:
            line = next(waiting, EOFError)
            if not isinstance(line, str):
                raise line
            return line

        reader = PlainReader(read)
        commands = Commands(self.shell, self.connect, reader.history)
        self.shown.clear()
        with self.shell:
            Loop(self.shell, reader, commands, self.names).run()
        return self.shown


def test_statements_may_go_over_several_lines(server: FakeSqlServer) -> None:
    World(server).type("SHOW", "  STREAMS; SHOW", "-- a word", "TABLES;")
    assert [asked["ksql"] for asked in server.asked] == [
        "SHOW\n  STREAMS;",
        "SHOW\n-- a word\nTABLES;",
    ]


def test_ctrl_c_drops_what_is_half_typed(server: FakeSqlServer) -> None:
    World(server).type("SELECT 'oh;", KeyboardInterrupt, "SHOW STREAMS;")
    assert [asked["ksql"] for asked in server.asked] == ["SHOW STREAMS;"]


def test_errors_do_not_end_the_shell(server: FakeSqlServer) -> None:
    server.answers["SHOW BAD;"] = refusal("line 1:6: no", "SHOW BAD;")
    world = World(server)
    world.type("SHOW BAD;", "output xml", "SHOW STREAMS;")
    assert world.errors == [
        "  SHOW BAD;\n       ^^^",
        "line 1:6: no",
        "There is no output xml: it is JSON or TABULAR",
    ]
    assert len(server.asked) == 2


@pytest.mark.parametrize("leave", ["exit", "quit;", "EXIT"])
def test_leaving(server: FakeSqlServer, leave: str) -> None:
    World(server).type(leave, "SHOW STREAMS;")
    assert not server.asked


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["help"], "Run the statements of a file"),
        (["version"], "Version: 7.9.0"),
        (["server"], "http://127.0.0.1:"),
        (["status;"], " service       | default_"),
        (["status"], " kafka         | in trouble"),
        (["output"], "Output format: TABULAR"),
        (["output json", "SHOW STREAMS;"], '{"@type": "streams"'),
        (["cli column-width 7", "SELECT * FROM s;"], "|1      |one    |"),
        (["cli wrap off", "cli"], " wrap         | off"),
        (["SHOW", "STREAMS;", "history"], "    2  STREAMS;"),
        (["SELECT * FROM s;"], "|1                  |one                |"),
    ],
)
def test_commands(server: FakeSqlServer, lines: list[str], expected: str) -> None:
    server.answers["SHOW STREAMS;"] = (200, [STREAMS])
    server.answers["SELECT * FROM s;"] = (200, ROWS)
    details = {"kafka": {"isHealthy": False}}
    server.answers["/healthcheck"] = (503, {"isHealthy": False, "details": details})
    world = World(server)
    shown = world.type(*lines)
    assert any(expected in line for line in shown), (shown, world.errors)


def test_another_server_can_be_asked(server: FakeSqlServer) -> None:
    with FakeSqlServer() as other:
        World(server).type(f"server {other.url}", "SHOW STREAMS;")
        assert (len(server.asked), len(other.asked)) == (0, 1)


def test_a_spool_has_what_was_typed_and_shown(server: FakeSqlServer, tmp_path: Path) -> None:
    server.answers["SHOW STREAMS;"] = (200, [STREAMS])
    path = tmp_path / "spool"
    world = World(server)
    world.type(f"spool '{path}'", "SHOW STREAMS;", "spool off", "version")
    text = path.read_text()
    assert "ksql> SHOW STREAMS;\n" in text
    assert " Stream Name" in text
    assert "Version" not in text
    world.type("spool /nowhere/at/all")
    assert world.errors == ["Cannot write /nowhere/at/all: No such file or directory"]


def test_scripts_run_from_the_prompt(server: FakeSqlServer, tmp_path: Path) -> None:
    (tmp_path / "s.sql").write_text("SHOW TOPICS;")
    World(server).type(f"run script '{tmp_path}/s.sql'", f"RUN SCRIPT '{tmp_path}/s.sql';")
    assert [asked["ksql"] for asked in server.asked] == ["SHOW TOPICS;"] * 2


def test_ctrl_c_ends_a_query_and_its_answer(server: FakeSqlServer) -> None:
    server.answers["SELECT * FROM s EMIT CHANGES;"] = (200, [*ROWS[:2], FOR_EVER])
    world = World(server)

    def show(line: str) -> None:
        world.shown.append(line)
        if "one" in line:
            raise KeyboardInterrupt

    world.console._write = show
    assert world.type("SELECT * FROM s EMIT CHANGES;", "version")[-2:] == [
        "Query terminated",
        "Version: 7.9.0",
    ]
    assert server.closed.wait(PATIENCE_S)


def test_names_of_the_server_are_completed(server: FakeSqlServer) -> None:
    listed = {"@type": "streams", "streams": [{"name": "CLICKS"}]}
    server.answers["SHOW STREAMS;"] = (200, [listed])
    world = World(server)
    assert world.names.all() == ["CLICKS"]
    server.answers["SHOW STREAMS;"] = (500, {"error_code": 50000, "message": "no"})
    assert world.names.all() == ["CLICKS"]
    world.names.forget()
    assert world.names.all() == []
    world.client.close()


def test_history_is_in_the_users_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert state_directory() == str(tmp_path / "barnabas")
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "/home/ann")
    assert state_directory() == "/home/ann/.local/state/barnabas"
