"""Certificates, read from their DER form: as little of X.509 as a node needs.

Names are written as Java writes them (RFC 2253, X500Principal.getName()), because ACLs and rules
for principals are: known attributes by their keyword, all others by number, and in hex the values
of those others and what is not text.
"""

import ipaddress
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

_UTC_TIME: Final = 0x17
_VERSION: Final = 0xA0
_EXTENSIONS: Final = 0xA3
_DNS_NAME: Final = 0x82
_IP_ADDRESS: Final = 0x87
_BOOLEAN: Final = 0x01
_ALTERNATIVE_NAMES: Final = "2.5.29.17"
_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
_TEXT_TAGS: Final = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E})
"""UTF8, Printable, T61, IA5, General and BMP strings."""
_SPACES: Final = " \r"
"""The characters that Java escapes at both ends of a value."""
_ESCAPED: Final = frozenset(',=+<>#;"\\')
_NEAR_YEARS: Final = 50
"""A year of two digits is of this century below that. Source: RFC 5280, 4.1.2.5.1."""


class CertificateError(ValueError):
    """Bytes that are not a certificate."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """The parts of a certificate that are asked for here."""

    subject: str
    not_before: datetime
    not_after: datetime
    dns_names: frozenset[str]
    ip_addresses: frozenset[str]

    @property
    def alternative_names(self) -> frozenset[str]:
        """Hosts that it stands for."""
        return self.dns_names | self.ip_addresses

    def is_for(self, host: str) -> bool:
        """Return whether a client that connects to `host` accepts the name."""
        return stands_for(self.alternative_names, host)


def read_certificate(der: bytes) -> Certificate:
    """Raises CertificateError."""
    try:
        (certificate,) = _children(der)
        body = _children(_children(certificate[1])[0][1])
        if body[0][0] == _VERSION:
            body = body[1:]
        # serial number, algorithm, issuer, validity, subject, key, and what may follow
        not_before, not_after = (_time(*each) for each in _children(body[3][1]))
        dns_names, addresses = _alternative_names(body[6:])
        return Certificate(_name(body[4][1]), not_before, not_after, dns_names, addresses)
    except (IndexError, ValueError, OverflowError) as error:
        raise CertificateError("this is not an X.509 certificate") from error


def stands_for(names: Collection[str], host: str) -> bool:
    """Return whether host names and addresses of a certificate cover `host` (RFC 6125).

    A `*` stands for one whole label, the first.
    """
    try:
        return str(ipaddress.ip_address(host.strip("[]"))) in names
    except ValueError:
        wanted = host.rstrip(".").lower()
    known = {name.lower() for name in names}
    label, dot, domain = wanted.partition(".")
    return wanted in known or (bool(label and dot) and f"*.{domain}" in known)


def subject_of(der: bytes) -> str:
    """The distinguished name of a certificate's owner. Raises CertificateError."""
    return read_certificate(der).subject


def content_of(der: bytes) -> list[tuple[int, bytes]]:
    """Tags and contents of the elements of a DER sequence. Raises ValueError, IndexError."""
    ((_, content),) = _children(der)
    return _children(content)


def name_of(der: bytes) -> str:
    """A DER name as text. Raises ValueError or IndexError for what is none."""
    ((_, content),) = _children(der)
    return _name(content)


def _name(content: bytes) -> str:
    """The last part of the sequence comes first in the text."""
    parts = []
    for _, attributes in reversed(_children(content)):
        parts.append("+".join(_attribute(each) for _, each in _children(attributes)))
    return ",".join(parts)


def _attribute(content: bytes) -> str:
    (_, identifier), (tag, value) = _children(content)
    number = _object_number(identifier)
    keyword = _KEYWORDS.get(number)
    if keyword is None or tag not in _TEXT_TAGS:
        return f"{keyword or number}=#{_encoded(tag, value).hex()}"
    return f"{keyword}={_escaped(value.decode('utf-8', 'replace'))}"


def _escaped(text: str) -> str:
    start = len(text) - len(text.lstrip(_SPACES))
    end = len(text.rstrip(_SPACES))
    escaped = []
    for position, letter in enumerate(text):
        if letter == "\0":
            escaped.append("\\00")
        elif letter in _ESCAPED or (letter in _SPACES and not start <= position < end):
            escaped.append("\\" + letter)
        else:
            escaped.append(letter)
    return "".join(escaped)


def _alternative_names(optional: list[tuple[int, bytes]]) -> tuple[frozenset[str], frozenset[str]]:
    names: set[str] = set()
    addresses: set[str] = set()
    extensions = [content for tag, content in optional if tag == _EXTENSIONS]
    for _, listed in _children(extensions[0]) if extensions else ():
        for _, extension in _children(listed):
            (_, identifier), *rest = _children(extension)
            if _object_number(identifier) != _ALTERNATIVE_NAMES:
                continue
            value = rest[1][1] if rest[0][0] == _BOOLEAN else rest[0][1]
            for tag, content in _children(_children(value)[0][1]):
                if tag == _DNS_NAME:
                    names.add(content.decode("latin-1"))
                elif tag == _IP_ADDRESS:
                    addresses.add(str(ipaddress.ip_address(content)))
    return frozenset(names), frozenset(addresses)


def _time(tag: int, content: bytes) -> datetime:
    text = content.decode("ascii")
    if tag == _UTC_TIME:
        text = ("20" if int(text[:2]) < _NEAR_YEARS else "19") + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)


def _object_number(content: bytes) -> str:
    numbers: list[int] = []
    value = 0
    for byte in content:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - first * 40, *numbers[1:])))


def _children(content: bytes) -> list[tuple[int, bytes]]:
    """Tags and contents of the elements that `content` consists of."""
    children = []
    position = 0
    while position < len(content):
        tag, size = content[position], content[position + 1]
        position += 2
        if size & 0x80:
            length = size & 0x7F
            size = int.from_bytes(content[position : position + length], "big")
            position += length
        if position + size > len(content):
            raise ValueError("an element is cut off")
        children.append((tag, content[position : position + size]))
        position += size
    return children


def _encoded(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    length = (size.bit_length() + 7) // 8
    return bytes((tag, 0x80 | length)) + size.to_bytes(length, "big") + content
