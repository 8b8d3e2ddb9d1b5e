"""Time zones by Java's ids: `Europe/London`, `UTC`, `Z`, `+02:00`, `GMT+2`.

The rules come from the tz database (`zoneinfo`), names as `PDT` too. Java has names for some zones
that the tz database shows as plain offsets; the common ones of these are here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LOCAL_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001
_FIRST_SECOND, _LAST_SECOND = -62_135_510_400, 253_402_214_400
"""Python knows the years 1 to 9999: outside of them a zone keeps its first or last offset."""

_WINTER = 1_704_067_200
"""2024-01-01."""


@dataclass(frozen=True, slots=True)
class Zone:
    """A zone; without rules it has one offset for all times."""

    id: str
    rules: ZoneInfo | None = field(default=None, compare=False)
    offset: int = 0
    is_offset: bool = False
    """True if the id is only an offset from UTC, as `+02:00`."""

    def offset_at(self, second: int) -> int:
        """Seconds east of UTC at a second since the epoch."""
        if self.rules is None:
            return self.offset
        return _seconds(self._at(second).utcoffset())

    def offset_of_local(self, second: int) -> int:
        """Seconds east of UTC for a local time, in seconds since 1970-01-01T00:00 local.

        A time that a clock shows twice is the first one; of a time that is left out, the offset
        before the gap."""
        if self.rules is None:
            return self.offset
        local = _LOCAL_EPOCH + timedelta(seconds=_bounded(second))
        return _seconds(local.replace(tzinfo=self.rules).utcoffset())

    def abbreviation_at(self, second: int) -> str:
        """The short name at that time, as `PDT`."""
        if self.rules is None:
            return self.id
        name = self._at(second).tzname() or self.id
        if name == "LMT":
            # Before there were zones, Java shows the standard name of today.
            name = self._at(_WINTER).tzname() or self.id
        return _UNNAMED.get(self.id, name) if name[0] in "+-" else name

    def is_summer_at(self, second: int) -> bool:
        """Return whether daylight saving time is in force."""
        return self.rules is not None and bool(self._at(second).dst())

    def _at(self, second: int) -> datetime:
        return (_EPOCH + timedelta(seconds=_bounded(second))).astimezone(self.rules)


def _bounded(second: int) -> int:
    return min(max(second, _FIRST_SECOND), _LAST_SECOND)


def _seconds(offset: timedelta | None) -> int:
    return int(offset.total_seconds()) if offset is not None else 0


def offset_text(seconds: int) -> str:
    """`Z`, `+02:00` or `-00:00:30`."""
    if not seconds:
        return "Z"
    minutes, second = divmod(abs(seconds), 60)
    hour, minute = divmod(minutes, 60)
    text = f"{'-' if seconds < 0 else '+'}{hour:02}:{minute:02}"
    return f"{text}:{second:02}" if second else text


def fixed(seconds: int) -> Zone:
    """The zone of an offset."""
    return Zone(offset_text(seconds), None, seconds, is_offset=True)


GMT = Zone("GMT")
UTC_ZONE = Zone("UTC")

_OFFSET = re.compile(r"([+-])(?:(\d)|(\d\d)(?:(\d\d)(\d\d)?|:(\d\d)(?::(\d\d))?)?)\Z", re.ASCII)
_PREFIXED = re.compile(r"(UTC|GMT|UT)([+-].+)\Z")
_REGION = re.compile(r"[A-Za-z][A-Za-z0-9~/._+-]+\Z")
_NOT_JAVA = {"EST", "MST", "HST", "ROC", "Factory", "posixrules", "localtime"}


@lru_cache(maxsize=1024)
def zone_of(text: str) -> Zone:
    """The zone of that id; raises ValueError for an unknown one."""
    if text in ("Z", "z"):
        return fixed(0)
    if text[:1] in ("+", "-"):
        return fixed(_offset_of(text))
    if text in ("UTC", "GMT", "UT"):
        return Zone(text)
    if prefixed := _PREFIXED.match(text):
        offset = _offset_of(prefixed[2])
        suffix = offset_text(offset) if offset else ""
        return Zone(prefixed[1] + suffix, None, offset)
    if not _REGION.match(text):
        raise ValueError(f"Invalid ID for region-based ZoneId, invalid format: {text}")
    if text in _NOT_JAVA or text.startswith(("posix/", "right/")):
        raise ValueError(f"Unknown time-zone ID: {text}")
    try:
        return Zone(text, ZoneInfo(text))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"Unknown time-zone ID: {text}") from None


def _offset_of(text: str) -> int:
    match = _OFFSET.match(text)
    if match is None:
        raise ValueError(f"Invalid ID for ZoneOffset, invalid format: {text}")
    sign, *digits = match.groups()
    short, hours, minutes, seconds, colon_minutes, colon_seconds = digits
    hour = int(short or hours)
    minute = int(minutes or colon_minutes or 0)
    second = int(seconds or colon_seconds or 0)
    total = hour * 3600 + minute * 60 + second
    if minute > 59 or second > 59 or total > 18 * 3600:
        raise ValueError(f"Zone offset not in valid range: {text}")
    return -total if sign == "-" else total


_UNNAMED = {
    "America/Sao_Paulo": "BRT",
    "America/Argentina/Buenos_Aires": "ART",
    "America/Buenos_Aires": "ART",
    "America/Bogota": "COT",
    "America/Santiago": "CLT",
    "America/Lima": "PET",
    "America/Caracas": "VET",
    "Asia/Almaty": "ALMT",
    "Asia/Bangkok": "ICT",
    "Asia/Dhaka": "BDT",
    "Asia/Dubai": "GST",
    "Asia/Ho_Chi_Minh": "ICT",
    "Asia/Kathmandu": "NPT",
    "Asia/Kuala_Lumpur": "MYT",
    "Asia/Riyadh": "AST",
    "Asia/Singapore": "SGT",
    "Asia/Tashkent": "UZT",
    "Asia/Tehran": "IRST",
    "Europe/Istanbul": "TRT",
}
"""Java's short names where the tz database has none."""

ZONE_OF_ABBREVIATION = {
    "PST": "America/Los_Angeles",
    "PDT": "America/Los_Angeles",
    "MST": "America/Denver",
    "MDT": "America/Denver",
    "CST": "America/Chicago",
    "CDT": "America/Chicago",
    "EST": "America/New_York",
    "EDT": "America/New_York",
    "AKST": "America/Anchorage",
    "AKDT": "America/Anchorage",
    "HST": "Pacific/Honolulu",
    "AST": "America/Halifax",
    "ADT": "America/Halifax",
    "NST": "America/St_Johns",
    "NDT": "America/St_Johns",
    "BRT": "America/Sao_Paulo",
    "WET": "Europe/Lisbon",
    "WEST": "Europe/Lisbon",
    "BST": "Europe/London",
    "CET": "Europe/Paris",
    "CEST": "Europe/Paris",
    "EET": "Europe/Bucharest",
    "EEST": "Europe/Bucharest",
    "MSK": "Europe/Moscow",
    "TRT": "Europe/Istanbul",
    "SAST": "Africa/Johannesburg",
    "GST": "Asia/Dubai",
    "PKT": "Asia/Karachi",
    "IST": "Asia/Kolkata",
    "ICT": "Asia/Bangkok",
    "SGT": "Asia/Singapore",
    "HKT": "Asia/Hong_Kong",
    "JST": "Asia/Tokyo",
    "KST": "Asia/Seoul",
    "AWST": "Australia/Perth",
    "ACST": "Australia/Adelaide",
    "ACDT": "Australia/Adelaide",
    "AEST": "Australia/Sydney",
    "AEDT": "Australia/Sydney",
    "NZST": "Pacific/Auckland",
    "NZDT": "Pacific/Auckland",
}
"""The zone that a short name means when a text is read (Java's choice for English)."""

_LONG_NAMES = {
    "America/Los_Angeles": "Pacific {} Time",
    "America/Denver": "Mountain {} Time",
    "America/Phoenix": "Mountain {} Time",
    "America/Chicago": "Central {} Time",
    "America/New_York": "Eastern {} Time",
    "America/Halifax": "Atlantic {} Time",
    "America/Anchorage": "Alaska {} Time",
    "Pacific/Honolulu": "Hawaii-Aleutian {} Time",
    "Asia/Tokyo": "Japan {} Time",
    "Asia/Seoul": "Korean {} Time",
    "Asia/Shanghai": "China {} Time",
    "Asia/Kolkata": "India {} Time",
    "Asia/Singapore": "Singapore {} Time",
    "Asia/Hong_Kong": "Hong Kong {} Time",
    "Asia/Dubai": "Gulf {} Time",
    "Australia/Sydney": "Australian Eastern {} Time",
    "Australia/Melbourne": "Australian Eastern {} Time",
    "Australia/Perth": "Australian Western {} Time",
    "Europe/Moscow": "Moscow {} Time",
    "America/Sao_Paulo": "Brasilia {} Time",
}
_LONG_NAMES_OF_ABBREVIATIONS = {
    "UTC": "Coordinated Universal Time",
    "GMT": "Greenwich Mean Time",
    "CET": "Central European Standard Time",
    "CEST": "Central European Summer Time",
    "EET": "Eastern European Standard Time",
    "EEST": "Eastern European Summer Time",
    "WET": "Western European Standard Time",
    "WEST": "Western European Summer Time",
    "BST": "British Summer Time",
    "SAST": "South Africa Standard Time",
}


def long_name_at(zone: Zone, second: int) -> str:
    """The full name, as `Pacific Daylight Time`; the id where we have none."""
    if (pattern := _LONG_NAMES.get(zone.id)) is not None:
        return pattern.format("Daylight" if zone.is_summer_at(second) else "Standard")
    return _LONG_NAMES_OF_ABBREVIATIONS.get(zone.abbreviation_at(second), zone.id)
