"""The parser's place in the tokens: what comes next, what must come, and what to say if it does
not. The wording of errors follows ksqlDB's, so that its users and tests know them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NoReturn, TypeVar

from barnabas.sql.errors import TOO_LARGE, ParseError, Place, PrepareError
from barnabas.sql.names import RESERVED
from barnabas.sql.syntax.lexer import NAMES, Token, TokenKind, tokenize
from barnabas.sql.syntax.limits import NESTING_MAX

T = TypeVar("T")

_KINDS_OF_TOKENS = frozenset({"INTEGER_VALUE", "a string"})
_SOURCE_NAME = re.compile(r"[a-zA-Z0-9_-]*\Z")


class Cursor:
    """Walks through the tokens of a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.position = 0
        self._open_count = 0

    # --- looking ----------------------------------------------------------------------------------

    @property
    def token(self) -> Token:
        """The next token."""
        return self.tokens[self.position]

    def ahead(self, count: int = 1) -> Token:
        """The token `count` tokens after the next one, or END."""
        return self.tokens[min(self.position + count, len(self.tokens) - 1)]

    def at(self, *words: str) -> bool:
        """Return whether the next tokens are these words or symbols."""
        return all(self.ahead(index).word == word for index, word in enumerate(words))

    def at_any(self, *words: str) -> bool:
        """Return whether the next token is one of these words or symbols."""
        return self.token.word in words

    def is_identifier(self, count: int = 0) -> bool:
        """Return whether the token there can be a name."""
        token = self.ahead(count)
        if token.kind is TokenKind.WORD:
            return token.word not in RESERVED
        return token.kind in NAMES or token.kind is TokenKind.VARIABLE

    # --- nesting ----------------------------------------------------------------------------------

    def open_level(self) -> None:
        """Note that an expression or type begins within another; raise if there are too many."""
        self._open_count += 1
        if self._open_count > NESTING_MAX:
            raise ParseError(TOO_LARGE, self.token.place)

    def close_level(self) -> None:
        """Note that what `open_level` began has ended."""
        self._open_count -= 1

    # --- taking -----------------------------------------------------------------------------------

    def take(self) -> Token:
        """The next token; the cursor moves behind it, but never behind END."""
        token = self.token
        if token.kind is not TokenKind.END:
            self.position += 1
        return token

    def accept(self, *words: str) -> bool:
        """Take these words if they come next."""
        if not self.at(*words):
            return False
        self.position += len(words)
        return True

    def expect(self, *words: str) -> Token:
        """Take these words, which must come next; gives the last of them."""
        for word in words:
            if self.token.word != word:
                self.fail_expecting(word)
            token = self.take()
        return token

    def listed(self, take: Callable[[], T]) -> tuple[T, ...]:
        """Take one or more things, between commas."""
        taken = [take()]
        while self.accept(","):
            taken.append(take())
        return tuple(taken)

    def string(self) -> str:
        """Take a string."""
        if self.token.kind is not TokenKind.STRING:
            self.fail_expecting("a string")
        token = self.take()
        self.note_text(token)
        return token.value

    def identifier(self, *, keeps_case: bool = False) -> str:
        """Take a name: as it counts, or as it was written (`keeps_case`)."""
        token = self.identifier_token()
        if token.kind in (TokenKind.QUOTED, TokenKind.BACKQUOTED):
            return token.value
        return token.text if keeps_case else token.text.upper()

    def identifier_token(self) -> Token:
        """Take a name, as a token."""
        if not self.is_identifier():
            self.fail_at_name()
        token = self.take()
        if token.kind is TokenKind.VARIABLE:
            self.note_identifier(token)
        return token

    def source_name(self) -> str:
        """Take the name of a stream or table."""
        place = self.token.place
        name = self.identifier()
        self.check_source_name(name, place)
        return name

    def check_source_name(self, name: str, place: Place) -> None:
        """Raise for a name that no stream or table can have."""
        if not _SOURCE_NAME.match(name):
            raise PrepareError(
                f"Illegal argument at Line: {place.line}, Col: {place.column}. Source names may "
                f"only contain alphanumeric values, '_' or '-'. Got: '{name}'"
            )

    # --- what substitution of variables wants to know ---------------------------------------------

    def note_text(self, token: Token) -> None:
        """A string was taken: it may contain variables."""

    def note_identifier(self, token: Token) -> None:
        """A variable was taken as a name."""

    def note_literal(self, token: Token) -> None:
        """A variable was taken as a literal."""

    # --- errors -----------------------------------------------------------------------------------

    def fail(self, message: str, place: Place | None = None) -> NoReturn:
        """Raise the syntax error at the place, or at the next token."""
        place = place or self.token.place
        lines = self.text.split("\n")
        raise ParseError(f"Syntax Error\n{message}", place, lines[place.line - 1].rstrip("\r"))

    def fail_here(self) -> NoReturn:
        """Raise that the next token cannot stand where it stands."""
        self.fail(f"Syntax error at or near '{self.token.shown}' at {self.token.place}")

    def fail_expecting(self, *words: str) -> NoReturn:
        """Raise the error for an unexpected token."""
        if words == (")",) and self.at(","):
            self.fail("missing ')' at ','")
        shown = [word if word in _KINDS_OF_TOKENS else f"'{word}'" for word in words]
        listed = shown[0] if len(shown) == 1 else "{" + ", ".join(shown) + "}"
        near = f"Syntax error at or near '{self.token.shown}' at {self.token.place}\n"
        self.fail(f"{near if self.token.kind is TokenKind.END else ''}Expecting {listed}")

    def fail_at_name(self) -> NoReturn:
        """Raise the error for a missing name; a reserved word gets a hint."""
        token = self.token
        if token.word not in RESERVED:
            self.fail_here()
        self.fail(
            f'"{token.text}" is a reserved keyword and it can\'t be used as an identifier.'
            f" You can use it as an identifier by escaping it as '{token.text}' "
        )
