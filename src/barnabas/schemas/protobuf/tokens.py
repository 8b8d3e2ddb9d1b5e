"""Tokens of a .proto text: one regular expression cuts it, a cursor walks over the pieces."""

import re
from decimal import Decimal, InvalidOperation

from barnabas.schemas.schema import SchemaFault

TEXT_CHARS_MAX = 8 << 20
NESTING_MAX = 64
# Of a name with all its parts. A name is looked for in each scope around it.
NAME_CHARS_MAX = 1024
NAME_PARTS_MAX = 64
_EXPONENT_MAX = 400

# No alternative can match what another has begun, so that time is linear in the text.
_TOKEN = re.compile(
    r"""
    (?:[\s\uFEFF]++|//[^\n]*+|/\*(?s:.*?)\*/)*+
    (?:
      (?P<number>(?>0[xX][0-9a-fA-F]++|(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+[fF]?+)(?![\w.]))
    | (?P<word>\.?[A-Za-z_][A-Za-z0-9_]*+(?:\.[A-Za-z_][A-Za-z0-9_]*+)*+)
    | (?P<string>"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"|'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+')
    | (?P<symbol>[{}\[\]()<>;:,=.+\-]|/(?!\*))
    | (?P<end>\Z)
    | (?P<bad>.)
    )
    """,
    re.VERBOSE | re.ASCII,
)
_ESCAPE = re.compile(
    rb"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL
)
_SINGLE_ESCAPES = {
    b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v",
    b"\\": b"\\", b"'": b"'", b'"': b'"', b"?": b"?",
}  # fmt: skip


def fault_at(text: str, position: int, message: str) -> SchemaFault:
    """A fault with its line and column, which count from 1."""
    if position < 0:
        return SchemaFault(message)
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    return SchemaFault(f"line {line}, column {column}: {message}")


class Cursor:
    """The tokens of a text, and how far they have been read.

    `kind` and `token` are those of the next token: `word`, `number`, `string`, `symbol` or `end`.
    """

    __slots__ = ("_depth", "_index", "_kinds", "_positions", "_tokens", "kind", "text", "token")

    def __init__(self, text: str) -> None:
        self.text = text
        self._kinds, self._tokens, self._positions = _cut(text)
        self._index = 0
        self._depth = 0
        self.kind = self._kinds[0]
        self.token = self._tokens[0]

    @property
    def position(self) -> int:
        return self._positions[self._index]

    def take(self) -> str:
        """Go on by one token and return it."""
        taken = self.token
        if self.kind != "end":
            self._index += 1
            self.kind = self._kinds[self._index]
            self.token = self._tokens[self._index]
        return taken

    def following(self) -> str:
        """The token behind the next one."""
        return self._tokens[min(self._index + 1, len(self._tokens) - 1)]

    def accept(self, token: str) -> bool:
        """Take the next token if it is this symbol or keyword."""
        if self.token != token or self.kind == "string":
            return False
        self.take()
        return True

    def expect(self, token: str, where: str = "") -> None:
        if not self.accept(token):
            raise self.unexpected(f"'{token}'{where}")

    def identifier(self, what: str) -> str:
        """A name without dots."""
        if self.kind != "word" or "." in self.token:
            raise self.unexpected(what)
        return self._checked(self.take(), self._index - 1)

    def full_name(self, what: str) -> str:
        """A name that may have dots, in front too. Blanks between its parts are dropped."""
        if self.kind != "word" and self.token != ".":
            raise self.unexpected(what)
        start = self._index
        parts = [self.take()]
        while self.token[:1] == "." or parts[-1] == ".":
            if self.token[:1] == "." and parts[-1] == ".":
                raise self.unexpected(what)
            if self.kind != "word" and self.token != ".":
                raise self.unexpected(what)
            parts.append(self.take())
        return self._checked("".join(parts), start)

    def _checked(self, name: str, start: int) -> str:
        if len(name) > NAME_CHARS_MAX or name.count(".") > NAME_PARTS_MAX:
            raise self.fault(
                f"a name has more than {NAME_CHARS_MAX} characters or {NAME_PARTS_MAX} parts",
                self._positions[start],
            )
        return name

    def string(self, what: str) -> str:
        """A quoted string; several in a row are one."""
        if self.kind != "string":
            raise self.unexpected(what)
        parts = []
        while self.kind == "string":
            parts.append(self._unescaped())
            self.take()
        if len(parts) == 1:
            return parts[0]
        # Bytes of one character may be in two strings.
        whole = b"".join(part.encode("utf-8", "surrogateescape") for part in parts)
        return whole.decode("utf-8", "surrogateescape")

    def integer(self, what: str, low: int, high: int) -> int:
        """A whole number, decimal, octal or hexadecimal, perhaps with a minus."""
        at = self.position
        negative = self.accept("-")
        if self.kind != "number":
            raise self.unexpected(what)
        number = whole_number(self.token)
        if number is None:
            raise self.unexpected(what)
        self.take()
        number = -number if negative else number
        if not low <= number <= high:
            raise self.fault(f"{what} must be from {low} to {high}, found {number}", at)
        return number

    def enter(self) -> None:
        """Go into braces or brackets."""
        self._depth += 1
        if self._depth > NESTING_MAX:
            raise self.fault(f"nested more than {NESTING_MAX} deep", self.position)

    def leave(self) -> None:
        self._depth -= 1

    def fault(self, message: str, position: int) -> SchemaFault:
        return fault_at(self.text, position, message)

    def unexpected(self, expected: str) -> SchemaFault:
        shown = "the end of the text" if self.kind == "end" else _shortened(self.token)
        return self.fault(f"expected {expected}, found {shown}", self.position)

    def _unescaped(self) -> str:
        body = self.token[1:-1]
        if "\\" not in body:
            return body
        at = self.position

        def character(match: re.Match[bytes]) -> bytes:
            octal, hexadecimal, short, long, single = match.groups()
            if octal is not None:
                return bytes([int(octal, 8) & 0xFF])
            if hexadecimal is not None:
                return bytes([int(hexadecimal, 16)])
            if single is not None:
                if single not in _SINGLE_ESCAPES:
                    raise self.fault("the string has an escape that does not exist", at)
                return _SINGLE_ESCAPES[single]
            code = int(short or long, 16)
            if code > 0x10FFFF or 0xD800 <= code < 0xE000:
                raise self.fault("the string has an escape that is not a character", at)
            return chr(code).encode()

        return _ESCAPE.sub(character, body.encode()).decode("utf-8", "surrogateescape")


def whole_number(token: str) -> int | None:
    """The value of a number token, None if it has a fraction or too many digits for any use."""
    if len(token) > 40:
        return None
    try:
        if token[:2] in ("0x", "0X"):
            return int(token, 16)
        return int(token, 8) if token[0] == "0" and token != "0" else int(token)
    except ValueError:
        return None


def plain_number(text: str) -> str:
    """A number in decimal, without exponent and without zeros at its end."""
    sign = "-" if text[0] == "-" else ""
    digits = text[len(sign) :]
    if not (digits[:1].isdigit() or digits[:1] == "."):
        return text
    number = whole_number(digits)
    if number is not None:
        return f"{sign}{number}"
    try:
        decimal = Decimal(digits.rstrip("fF"))
    except InvalidOperation:
        return text
    if abs(decimal.adjusted()) > _EXPONENT_MAX:
        return text
    plain = f"{decimal:f}"
    return sign + (plain.rstrip("0").rstrip(".") if "." in plain else plain)


def _cut(text: str) -> tuple[list[str], list[str], list[int]]:
    if len(text) > TEXT_CHARS_MAX:
        raise SchemaFault(f"the text has {len(text)} characters, more than {TEXT_CHARS_MAX}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise fault_at(text, error.start, "the text has half of a surrogate pair") from None
    kinds: list[str] = []
    tokens: list[str] = []
    positions: list[int] = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind is None or kind == "bad":
            raise _bad(text, match.start("bad"))
        kinds.append(kind)
        tokens.append(match[kind])
        positions.append(match.start(kind))
        if kind == "end":
            break
    return kinds, tokens, positions


def _bad(text: str, position: int) -> SchemaFault:
    character = text[position]
    if text.startswith("/*", position):
        return fault_at(text, position, "the comment has no end: expected '*/'")
    if character in "\"'":
        return fault_at(text, position, f"the string has no end: expected {character} on its line")
    if character in "0123456789.":
        return fault_at(text, position, "expected a number, found letters in it")
    return fault_at(text, position, f"unexpected character {character!a}")


def _shortened(token: str) -> str:
    return token if len(token) <= 40 else token[:40] + "..."
