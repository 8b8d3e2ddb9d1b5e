"""The words that can stand where the user types."""

from __future__ import annotations

from barnabas.sql.shell.client import Context, KsqlClient, ShellError
from barnabas.sql.syntax.lexer import TokenKind, tokenize

_WORDS = (
    "ALTER STREAM|ALTER TABLE|AND|ARRAY|AS|ASSERT|AVRO|BETWEEN|BIGINT|BOOLEAN|BY|BYTES|CASE|CAST|"
    "CHANGES|CREATE OR REPLACE|CREATE SOURCE|CREATE STREAM|CREATE TABLE|CREATE TYPE|DATE|DECIMAL|"
    "DEFINE|DELETE TOPIC|DESCRIBE|DOUBLE|DROP STREAM|DROP TABLE|DROP TYPE|ELSE|EMIT CHANGES|"
    "EMIT FINAL|END|EXISTS|EXPLAIN|EXTENDED|FROM|FROM BEGINNING|FULL OUTER JOIN|FUNCTION|FUNCTIONS|"
    "GRACE PERIOD|GROUP BY|HAVING|HEADERS|HOPPING|IF EXISTS|IF NOT EXISTS|IN|INNER JOIN|"
    "INSERT INTO|INTEGER|IS NOT NULL|IS NULL|JOIN|KAFKA_TOPIC|KEY|KEY_FORMAT|LEFT JOIN|LIKE|LIMIT|"
    "MAP|NOT|NULL|ON|OR|PARTITION BY|PARTITIONS|PAUSE|PRIMARY KEY|PRINT|PROPERTIES|QUERIES|"
    "REPLICAS|RESUME|RETENTION|RIGHT JOIN|RUN SCRIPT|SELECT|SESSION|SET|SHOW|SIZE|STREAM|STREAMS|"
    "STRING|STRUCT|TABLE|TABLES|TERMINATE|THEN|TIME|TIMESTAMP|TOPICS|TUMBLING|TYPES|UNDEFINE|UNSET|"
    "VALUE_FORMAT|VALUES|VARCHAR|VARIABLES|WHEN|WHERE|WINDOW|WINDOWEND|WINDOWSTART|WITH|WITHIN"
)
WORDS = tuple(_WORDS.split("|"))
_LISTS = {
    "SHOW STREAMS;": ("streams", "name"),
    "SHOW TABLES;": ("tables", "name"),
    "SHOW FUNCTIONS;": ("functions", "name"),
    "SHOW QUERIES;": ("queries", "id"),
    "SHOW TOPICS;": ("topics", "name"),
}


class Names:
    """The names that the server knows, asked again after statements that may change them."""

    def __init__(self, client: KsqlClient) -> None:
        self.client = client
        self._names: list[str] | None = None

    def forget(self) -> None:
        """Ask again before the next use."""
        self._names = None

    def all(self) -> list[str]:
        """Sources, functions, queries and topics; none while the server does not tell."""
        if self._names is None:
            self._names = []
            for statement, (member, name) in _LISTS.items():
                try:
                    answers = self.client.statement(statement, Context({}, {}))
                except ShellError:
                    return self._names
                for answer in answers:
                    self._names += [str(one[name]) for one in answer.get(member) or ()]
        return self._names


def word_before(text: str) -> str:
    """The word that is being typed; nothing within a string or after a space."""
    last = ""
    for token in tokenize(text):
        if token.kind is TokenKind.UNKNOWN and token.text in ("'", '"', "`"):
            return ""
        if token.kind is not TokenKind.END:
            ends_here = token.stop == len(text)
            last = token.text if ends_here and token.kind is TokenKind.WORD else ""
    return last


def completions(text: str, names: list[str], commands: list[str]) -> list[str]:
    """Return completions of the word before the cursor: commands, then names, then words of SQL."""
    word = word_before(text)
    if not word:
        return []
    start = word.upper()
    is_first = text.strip() == word
    words = [name for name in commands if is_first and name.upper().startswith(start)]
    # Names in upper case may be typed in any; others count as they are.
    cased = {_cased(name, word) if name.isupper() else name for name in names}
    words += sorted(name for name in cased if name.startswith(word))
    words += [_cased(one, word) for one in WORDS if one.startswith(start)]
    return list(dict.fromkeys(words))


def _cased(word: str, typed: str) -> str:
    return word.lower() if typed.islower() else word
