"""Sizes and durations as people write them."""

import re

BYTE_UNITS = {
    "": 1,
    "b": 1,
    "k": 1024,
    "kb": 1000,
    "kib": 1024,
    "m": 1024**2,
    "mb": 1000**2,
    "mib": 1024**2,
    "g": 1024**3,
    "gb": 1000**3,
    "gib": 1024**3,
    "t": 1024**4,
    "tb": 1000**4,
    "tib": 1024**4,
}
DURATION_UNITS_MS = {
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 604_800_000,
}
_AMOUNT = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-zA-Z]*)\s*")


def parse_bytes(text: str) -> int:
    """`512`, `64k`, `1.5 GiB` in bytes; k, m, g, t alone count in 1024s. Raises ValueError."""
    amount, unit = _split(text)
    if unit not in BYTE_UNITS:
        raise ValueError(f"{text!r} is not a size such as 512, 64k or 1.5GiB")
    return int(amount * BYTE_UNITS[unit])


def parse_duration_ms(text: str) -> int:
    """`250ms`, `30s`, `1h30m`, `7d` in milliseconds. Raises ValueError."""
    parts = re.findall(r"[0-9.]+\s*[a-zA-Z]+", text)
    if not parts or "".join(parts).replace(" ", "") != text.replace(" ", ""):
        raise ValueError(f"{text!r} is not a duration such as 250ms, 30s, 1h30m or 7d")
    total_ms = 0.0
    for part in parts:
        amount, unit = _split(part)
        if unit not in DURATION_UNITS_MS:
            raise ValueError(f"{text!r} is not a duration such as 250ms, 30s, 1h30m or 7d")
        total_ms += amount * DURATION_UNITS_MS[unit]
    return int(total_ms)


def format_bytes(size_bytes: int) -> str:
    """`1.5 GiB`; exact below 1024."""
    value = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def _split(text: str) -> tuple[float, str]:
    match = _AMOUNT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not an amount")
    return float(match[1]), match[2].lower()
