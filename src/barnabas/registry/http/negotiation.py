"""Content types: which of them a request may have, and which one its answer gets."""

V1 = b"application/vnd.schemaregistry.v1+json"

_PRODUCED = {
    V1: 1.0,
    b"application/vnd.schemaregistry+json": 0.9,
    b"application/json": 0.5,
}
"""The content types of answers, with the registry's preference for each."""

_CONSUMED = frozenset({*_PRODUCED, b"application/octet-stream"})

_KNOWN_MAX = 256
_known: dict[bytes, bytes | None] = {b"": V1, b"*/*": V1}
"""Accept headers that were read already. Clients send few different ones."""


def answer_type(accept: bytes) -> bytes | None:
    """Return the content type for an Accept header; None if the client accepts none of ours.

    Among the types with the client's highest weight it is the one that the registry prefers.
    """
    try:
        return _known[accept]
    except KeyError:
        pass
    media_type = _read_accept(accept)
    if len(_known) >= _KNOWN_MAX:
        _known.clear()
    _known[accept] = media_type
    return media_type


def _read_accept(accept: bytes) -> bytes | None:
    ranges: dict[bytes, float] = {}
    for item in accept.lower().split(b","):
        name, *parameters = (part.strip() for part in item.split(b";"))
        if name:
            ranges[name] = _weight(parameters)
    if not ranges:
        return V1
    best: tuple[float, float] = (0.0, 0.0)
    media_type: bytes | None = None
    for produced, preference in _PRODUCED.items():
        for name in (produced, b"application/*", b"*/*"):
            if name in ranges:
                if ranges[name] > 0 and (ranges[name], preference) > best:
                    best, media_type = (ranges[name], preference), produced
                break
    return media_type


def _weight(parameters: list[bytes]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition(b"=")
        if name.strip() == b"q":
            try:
                return min(max(float(value), 0.0), 1.0)
            except ValueError:
                return 0.0
    return 1.0


def is_consumed(content_type: bytes) -> bool:
    """Whether a body may have a Content-Type; none at all stands for octets, which are JSON."""
    name = content_type.partition(b";")[0].strip().lower()
    return not name or name in _CONSUMED
