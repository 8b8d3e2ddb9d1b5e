"""Parsing of statements: `parse` takes a text with any number of them.

The grammar is ksqlDB's. What only a test file may hold (ASSERT VALUES, RUN SCRIPT) is taken where
`is_test` says so. Names of types and sources are not looked up: the analysis does that.
"""

from __future__ import annotations

from barnabas.sql.errors import ParseError, SqlError
from barnabas.sql.syntax import tree
from barnabas.sql.syntax.expressions import Expression
from barnabas.sql.syntax.lexer import TokenKind
from barnabas.sql.syntax.limits import check_text, check_tree
from barnabas.sql.syntax.statement_parser import StatementParser
from barnabas.sql.syntax.tree import ParsedStatement


def parse(text: str, *, is_test: bool = False) -> tuple[ParsedStatement, ...]:
    """The statements of a text, each of which ends with `;`.

    Raises ParseError with the place of the first thing that is wrong. Places count from the
    beginning of the whole text.
    """
    check_text(text)
    parser = StatementParser(text, is_test=is_test)
    statements = []
    while parser.token.kind is not TokenKind.END:
        start = parser.token.start
        try:
            statement = parser.statement()
            stop = parser.end_of_statement()
            parser.check_qualifiers()
            check_tree(statement)
        except SqlError as error:
            error.statement = error.statement or text[start:].strip()
            raise
        statements.append(ParsedStatement(text[start:stop], statement))
    return tuple(statements)


def parse_one(text: str, *, is_test: bool = False) -> tree.Statement:
    """The one statement of a text; the `;` at its end may be left out."""
    if not text.rstrip().endswith(";"):
        text += "\n;"
    statements = parse(text, is_test=is_test)
    if len(statements) != 1:
        raise ParseError(f"Expecting one statement, got {len(statements)}", statement=text)
    return statements[0].statement


def parse_expression(text: str) -> Expression:
    """The expression of a text. Names before points are taken as they stand."""
    check_text(text)
    parser = StatementParser(text)
    expression = parser.expression()
    check_tree(expression)
    if parser.token.kind is not TokenKind.END:
        parser.fail_here()
    return expression
