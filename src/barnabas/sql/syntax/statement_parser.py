"""Parsing of each kind of statement, by its first words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import NoReturn

from barnabas.sql.errors import PrepareError
from barnabas.sql.syntax import expressions as nodes
from barnabas.sql.syntax import tree
from barnabas.sql.syntax.lexer import NUMBERS, TokenKind
from barnabas.sql.syntax.query_parser import QueryParser
from barnabas.sql.types import SqlType


class StatementParser(QueryParser):
    """A cursor that can take statements."""

    def __init__(self, text: str, *, is_test: bool = False) -> None:
        super().__init__(text)
        self.is_test = is_test

    def statement(self) -> tree.Statement:
        """Take a statement, without the `;` behind it."""
        self.qualifiers.clear()
        self.sources.clear()
        word = self.token.word
        if word in STATEMENTS:
            return STATEMENTS[word](self)
        if not self.is_test or word != "RUN":
            self._fail_at_statement()
        return self._run_script()

    def end_of_statement(self) -> int:
        """Take the `;`; gives the offset behind it."""
        if not self.at(";"):
            if self.token.kind is TokenKind.END:
                self.fail_expecting(";")
            self.fail_here()
        return self.take().stop

    def _fail_at_statement(self) -> NoReturn:
        token = self.token
        alike = get_close_matches(token.text.upper(), STATEMENTS, 1, 0)[0]
        self.fail(f"Unknown statement '{token.shown}'\nDid you mean '{alike}'?")

    # --- CREATE -----------------------------------------------------------------------------------

    def _create(self) -> tree.Statement:
        place = self.expect("CREATE").place
        if self.accept("TYPE"):
            return self._create_type()
        if self.at_any("SINK", "SOURCE") and self.ahead().word == "CONNECTOR":
            return self._create_connector()
        or_replace = self.accept("OR", "REPLACE")
        is_source = self.accept("SOURCE")
        kind = self._kind()
        if_not_exists = self.accept("IF", "NOT", "EXISTS")
        name = self.source_name()
        elements = self._elements() if self.at("(") else ()
        properties = self._with()
        if elements or is_source or not self.accept("AS"):
            return tree.CreateSource(
                kind, name, elements, properties, or_replace, if_not_exists, is_source, place=place
            )
        query = self.query(is_persistent=True)
        if query.limit is not None:
            raise PrepareError(
                f"CREATE {kind.value} AS SELECT statements don't support LIMIT clause."
            )
        return tree.CreateAsSelect(
            kind, name, query, properties, or_replace, if_not_exists, place=place
        )

    def _kind(self) -> tree.SourceKind:
        if self.accept("STREAM"):
            return tree.SourceKind.STREAM
        if not self.at("TABLE"):
            self.fail_here()
        self.expect("TABLE")
        return tree.SourceKind.TABLE

    def _elements(self) -> tuple[tree.ColumnElement, ...]:
        self.expect("(")
        elements = self.listed(self._element)
        if not self.at(")"):
            self.fail_expecting(",", ")")
        self.expect(")")
        return elements

    def _element(self) -> tree.ColumnElement:
        place = self.token.place
        name, column_type = self.identifier(), self.type()
        constraint, header = None, None
        if self.accept("PRIMARY", "KEY"):
            constraint = tree.Constraint.PRIMARY_KEY
        elif self.accept("KEY"):
            constraint = tree.Constraint.KEY
        elif self.accept("HEADERS"):
            constraint = tree.Constraint.HEADERS
        elif self.accept("HEADER"):
            constraint = tree.Constraint.HEADER
            self.expect("(")
            header = self.string().strip()
            self.expect(")")
            if not header:
                raise PrepareError("Header column must have a non-empty header key name defined")
        return tree.ColumnElement(name, column_type, constraint, header, place=place)

    def _with(self) -> Mapping[str, tree.Literal]:
        """`WITH (name=literal, …)`, if it comes next; names count without regard to case."""
        return self._properties() if self.accept("WITH") else {}

    def _properties(self, *, keeps_case: bool = False) -> Mapping[str, tree.Literal]:
        self.expect("(")
        properties: dict[str, tree.Literal] = {}
        while not properties or self.accept(","):
            is_string = self.token.kind is TokenKind.STRING
            name = self.string() if is_string else self.identifier()
            name = name if keeps_case else name.upper()
            self.expect("=")
            if name in properties:
                raise PrepareError(f"Duplicate property in the WITH clause: {name}")
            properties[name] = self._literal()
        if not self.at(")"):
            self.fail_expecting(",", ")")
        self.expect(")")
        return properties

    def _literal(self) -> tree.Literal:
        token = self.token
        if token.kind is TokenKind.STRING:
            return self.string()
        if token.kind in NUMBERS or self.at("-"):
            literal = self.number()
            assert isinstance(
                literal,
                nodes.IntegerLiteral
                | nodes.LongLiteral
                | nodes.DoubleLiteral
                | nodes.DecimalLiteral,
            )
            return literal.value
        if token.kind is TokenKind.VARIABLE:
            self.note_literal(self.take())
            return token.text
        if self.at_any("TRUE", "FALSE"):
            return self.take().word == "TRUE"
        if not self.at("NULL"):
            self.fail_here()
        self.expect("NULL")
        return None

    def _create_type(self) -> tree.Statement:
        place = self.token.place
        if_not_exists = self.accept("IF", "NOT", "EXISTS")
        name = self.identifier()
        self.expect("AS")
        return tree.CreateType(name, self.type(), if_not_exists, place=place)

    def _create_connector(self) -> tree.Statement:
        place = self.token.place
        is_source = self.take().word == "SOURCE"
        self.expect("CONNECTOR")
        if_not_exists = self.accept("IF", "NOT", "EXISTS")
        name = self.identifier()
        self.expect("WITH")
        properties = self._properties(keeps_case=True)
        return tree.CreateConnector(name, is_source, properties, if_not_exists, place=place)

    # --- INSERT, DROP, ALTER ----------------------------------------------------------------------

    def _insert(self) -> tree.Statement:
        place = self.token.place
        self.expect("INSERT", "INTO")
        name = self.source_name()
        if self.at("SELECT") or self.at("WITH"):
            properties = self._with()
            return tree.InsertInto(name, self.query(is_persistent=True), properties, place=place)
        columns = self._columns()
        self.expect("VALUES")
        return tree.InsertValues(name, columns, self.values(), place=place)

    def _columns(self) -> tuple[str, ...]:
        """`(name, …)`, if it comes next."""
        if not self.accept("("):
            return ()
        columns = self.listed(self.identifier)
        self.expect(")")
        return columns

    def _drop(self) -> tree.Statement:
        place = self.expect("DROP").place
        if self.accept("CONNECTOR"):
            if_exists = self.accept("IF", "EXISTS")
            return tree.DropConnector(self.identifier(), if_exists, place=place)
        if self.accept("TYPE"):
            if_exists = self.accept("IF", "EXISTS")
            return tree.DropType(self.identifier(), if_exists, place=place)
        kind = self._kind()
        if_exists = self.accept("IF", "EXISTS")
        name = self.source_name()
        deletes = self.accept("DELETE", "TOPIC")
        return tree.DropSource(kind, name, if_exists, deletes, place=place)

    def _alter(self) -> tree.Statement:
        place = self.expect("ALTER").place
        if self.accept("SYSTEM"):
            name = self.string()
            self.expect("=")
            return tree.SetProperty(name, self.string(), is_system=True, place=place)
        kind = self._kind()
        name = self.source_name()
        return tree.AlterSource(kind, name, self.listed(self._added_column), place=place)

    def _added_column(self) -> tuple[str, SqlType]:
        self.expect("ADD")
        if self.at("COLUMN") and self.is_identifier(1) and not self._ends_column(2):
            self.expect("COLUMN")
        return self.identifier(), self.type()

    def _ends_column(self, count: int) -> bool:
        """Return whether a column that is called COLUMN ends there: `ADD column INT;`."""
        return self.ahead(count).word in (",", ";", "")

    # --- about statements -------------------------------------------------------------------------

    def _show(self) -> tree.Statement:
        place = self.take().place
        show_all = self.accept("ALL")
        for listed in sorted(tree.Listed, key=lambda listed: -len(listed.value)):
            words = listed.value.split()
            if (not show_all or listed is tree.Listed.TOPICS) and self.accept(*words):
                extended = listed in _EXTENDED and self.accept("EXTENDED")
                return tree.Show(listed, extended, show_all, place=place)
        return self.fail_here()

    def _describe(self) -> tree.Statement:
        place = self.expect("DESCRIBE").place
        described, name = tree.Described.SOURCE, None
        if self.accept("STREAMS"):
            described = tree.Described.STREAMS
        elif self.at("TABLES") and self.token.kind is TokenKind.WORD:
            self.take()
            described = tree.Described.TABLES
        elif self.at("FUNCTION") and self.is_identifier(1):
            self.take()
            return tree.Describe(tree.Described.FUNCTION, self._function_name(), place=place)
        elif self.accept("CONNECTOR"):
            return tree.Describe(tree.Described.CONNECTOR, self.identifier(), place=place)
        else:
            name = self.source_name()
        return tree.Describe(described, name, self.accept("EXTENDED"), place=place)

    def _function_name(self) -> str:
        """A function's name as it was written, with quotes and all."""
        return self.identifier_token().text

    def _explain(self) -> tree.Statement:
        place = self.expect("EXPLAIN").place
        ends = self.ahead().word == ";" or self.ahead().kind is TokenKind.END
        if self.is_identifier() and ends:
            return tree.Explain(query_id=self.identifier(), place=place)
        return tree.Explain(statement=self.statement_inside(), place=place)

    def statement_inside(self) -> tree.Statement:
        """Take the statement that EXPLAIN is about."""
        if self.token.word not in STATEMENTS:
            self._fail_at_statement()
        return STATEMENTS[self.token.word](self)

    def _print(self) -> tree.Statement:
        place = self.expect("PRINT").place
        topic = self._resource_name()
        from_beginning = self.accept("FROM", "BEGINNING")
        interval = None
        if self.accept("INTERVAL") or self.accept("SAMPLE"):
            interval = self.whole_number("INTERVAL")
        limit = self.whole_number("LIMIT") if self.accept("LIMIT") else None
        return tree.PrintTopic(topic, from_beginning, interval, limit, place=place)

    def _resource_name(self) -> str:
        """The name of a topic or subject: a string, or a name whose case counts."""
        if self.token.kind is TokenKind.STRING:
            return self.string()
        return self.identifier(keeps_case=True)

    def _control(self) -> tree.Statement:
        token = self.take()
        query_id = None if self.accept("ALL") else self.identifier()
        return tree.ControlQuery(tree.Control[token.word], query_id, place=token.place)

    def _set(self) -> tree.Statement:
        place = self.expect("SET").place
        name = self.string()
        self.expect("=")
        return tree.SetProperty(name, self.string(), place=place)

    def _unset(self) -> tree.Statement:
        place = self.expect("UNSET").place
        return tree.UnsetProperty(self.string(), place=place)

    def _define(self) -> tree.Statement:
        place = self.expect("DEFINE").place
        name = self._variable_name()
        self.expect("=")
        return tree.DefineVariable(name, self.string(), place=place)

    def _undefine(self) -> tree.Statement:
        place = self.expect("UNDEFINE").place
        return tree.UndefineVariable(self._variable_name(), place=place)

    def _variable_name(self) -> str:
        """A variable's name: any word, as written."""
        if self.token.kind is not TokenKind.WORD:
            self.fail_here()
        return self.take().text

    # --- assertions -------------------------------------------------------------------------------

    def _assert(self) -> tree.Statement:
        place = self.expect("ASSERT").place
        exists = not self.accept("NOT", "EXISTS")
        if self.accept("TOPIC"):
            topic, properties = self._resource_name(), self._with()
            return tree.AssertTopic(topic, properties, self._timeout(), exists, place=place)
        if self.accept("SCHEMA"):
            return self._assert_schema(exists=exists)
        if not self.is_test or not exists:
            self.fail_here()
        if self.accept("VALUES") or self.accept("NULL", "VALUES"):
            is_tombstone = self.ahead(-2).word == "NULL"
            name, columns = self.source_name(), self._columns()
            self.expect("KEY" if is_tombstone else "VALUES")
            return tree.AssertValues(name, columns, self.values(), is_tombstone, place=place)
        kind, name = self._kind(), self.source_name()
        elements = self._elements() if self.at("(") else ()
        return tree.AssertSource(kind, name, elements, self._with(), place=place)

    def _assert_schema(self, *, exists: bool) -> tree.Statement:
        place = self.token.place
        subject = self._resource_name() if self.accept("SUBJECT") else None
        schema_id = self._literal() if self.accept("ID") else None
        if subject is None and schema_id is None:
            raise PrepareError("ASSERT SCHEMA statements must include a subject name or an id")
        if schema_id is not None and not isinstance(schema_id, int):
            raise PrepareError("ID must be an integer")
        return tree.AssertSchema(subject, schema_id, self._timeout(), exists, place=place)

    def _timeout(self) -> int | None:
        return self.duration_ms() if self.accept("TIMEOUT") else None

    def _run_script(self) -> tree.Statement:
        place = self.token.place
        self.expect("RUN", "SCRIPT")
        return tree.RunScript(self.string(), place=place)

    def _query(self) -> tree.Statement:
        return self.query(is_persistent=False)


_EXTENDED = frozenset(
    {tree.Listed.TOPICS, tree.Listed.STREAMS, tree.Listed.TABLES, tree.Listed.QUERIES}
)
"""The kinds that can be listed with EXTENDED."""

STATEMENTS: dict[str, Callable[[StatementParser], tree.Statement]] = {
    "SELECT": StatementParser._query,
    "CREATE": StatementParser._create,
    "INSERT": StatementParser._insert,
    "DESCRIBE": StatementParser._describe,
    "PRINT": StatementParser._print,
    "EXPLAIN": StatementParser._explain,
    "SHOW": StatementParser._show,
    "LIST": StatementParser._show,
    "TERMINATE": StatementParser._control,
    "PAUSE": StatementParser._control,
    "RESUME": StatementParser._control,
    "DROP": StatementParser._drop,
    "SET": StatementParser._set,
    "DEFINE": StatementParser._define,
    "UNDEFINE": StatementParser._undefine,
    "UNSET": StatementParser._unset,
    "ASSERT": StatementParser._assert,
    "ALTER": StatementParser._alter,
}
"""The parser of each statement by its first word, in the order of ksqlDB's grammar."""
