"""Elements of a pattern that write and read offsets and time zones."""

from __future__ import annotations

import re
from dataclasses import dataclass

from barnabas.java.time.elements import Mismatch, Reading
from barnabas.java.time.fields import Moment
from barnabas.java.time.zones import ZONE_OF_ABBREVIATION, fixed, long_name_at, zone_of

OFFSET = "OffsetSeconds"


@dataclass(frozen=True, slots=True)
class Offset:
    """An offset from UTC as digits.

    `form`: "+HHmm" (minutes only if there are any), "+HHMM", "+HH:MM", "+HHMMss", "+HH:MM:ss".
    """

    form: str
    zero: str
    """The text for UTC."""

    def write(self, moment: Moment) -> str:
        total = moment.offset
        minutes, second = divmod(abs(total), 60)
        hour, minute = divmod(minutes, 60)
        has_seconds = self.form.endswith("ss")
        if not hour and not minute and not (has_seconds and second):
            return self.zero
        colon = ":" if ":" in self.form else ""
        text = f"{'-' if total < 0 else '+'}{hour:02}"
        if "MM" in self.form or minute:
            text += f"{colon}{minute:02}"
        return f"{text}{colon}{second:02}" if has_seconds and second else text

    def read(self, reading: Reading, position: int) -> int:
        match = _OFFSETS[self.form].match(reading.text, position)
        if match is not None:
            sign, hour, minute, second = match.groups()
            total = int(hour) * 3600 + int(minute or 0) * 60 + int(second or 0)
            if int(minute or 0) > 59 or int(second or 0) > 59 or total > 18 * 3600:
                raise Mismatch(position)
            reading.put(OFFSET, -total if sign == "-" else total, position)
            return match.end()
        if reading.starts_with(self.zero, position):
            reading.put(OFFSET, 0, position)
            return position + len(self.zero)
        raise Mismatch(position)


_OFFSETS = {
    "+HHmm": re.compile(r"([+-])(\d\d)(?:(\d\d))?()", re.ASCII),
    "+HHMM": re.compile(r"([+-])(\d\d)(\d\d)()", re.ASCII),
    "+HH:MM": re.compile(r"([+-])(\d\d):(\d\d)()", re.ASCII),
    "+HHMMss": re.compile(r"([+-])(\d\d)(\d\d)(\d\d)?", re.ASCII),
    "+HH:MM:ss": re.compile(r"([+-])(\d\d):(\d\d)(?::(\d\d))?", re.ASCII),
}


@dataclass(frozen=True, slots=True)
class LocalizedOffset:
    """An offset after GMT: `GMT+8`, or in full `GMT+08:00`."""

    is_full: bool

    def write(self, moment: Moment) -> str:
        total = moment.offset
        if not total:
            return "GMT"
        minutes, second = divmod(abs(total), 60)
        hour, minute = divmod(minutes, 60)
        text = f"GMT{'-' if total < 0 else '+'}{hour:02}" if self.is_full else ""
        text = text or f"GMT{'-' if total < 0 else '+'}{hour}"
        if self.is_full or minute or second:
            text += f":{minute:02}"
        return f"{text}:{second:02}" if second else text

    def read(self, reading: Reading, position: int) -> int:
        if not reading.starts_with("GMT", position):
            raise Mismatch(position)
        position += 3
        match = (_FULL if self.is_full else _SHORT).match(reading.text, position)
        if match is None:
            reading.put(OFFSET, 0, position)
            return position
        sign, hour, minute, second = match.groups()
        total = int(hour) * 3600 + int(minute or 0) * 60 + int(second or 0)
        reading.put(OFFSET, -total if sign == "-" else total, position)
        return match.end()


_FULL = re.compile(r"([+-])(\d\d):(\d\d)(?::(\d\d))?", re.ASCII)
_SHORT = re.compile(r"([+-])(\d\d?)(?::(\d\d)(?::(\d\d))?)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class ZoneId:
    """A zone by its id."""

    def write(self, moment: Moment) -> str:
        if moment.zone is None:
            raise ValueError("Unable to extract ZoneId from temporal")
        return moment.zone.id

    def read(self, reading: Reading, position: int) -> int:
        match = _ID.match(reading.text, position)
        for end in range(match.end() if match else position, position, -1):
            if _read_zone(reading, reading.text[position:end]):
                return end
        raise Mismatch(position)


_ID = re.compile(r"[A-Za-z0-9~/._+:-]+")


@dataclass(frozen=True, slots=True)
class ZoneName:
    """A zone by its name: `PDT`, or in full `Pacific Daylight Time`. Reads ids as well."""

    is_full: bool

    def write(self, moment: Moment) -> str:
        if moment.zone is None:
            raise ValueError("Unable to extract ZoneId from temporal")
        if moment.zone.is_offset:
            return moment.zone.id
        if self.is_full:
            return long_name_at(moment.zone, moment.second)
        return moment.zone.abbreviation_at(moment.second)

    def read(self, reading: Reading, position: int) -> int:
        for name in _NAMES:
            end = position + len(name)
            if reading.starts_with(name, position) and not reading.text[end : end + 1].isalpha():
                zone = zone_of(_NAMES[name])
                if _ID.match(reading.text, end) is None:
                    reading.zone = zone
                    return end
        return ZoneId().read(reading, position)


_NAMES = dict(
    sorted(
        [
            *ZONE_OF_ABBREVIATION.items(),
            ("Pacific Standard Time", "America/Los_Angeles"),
            ("Pacific Daylight Time", "America/Los_Angeles"),
            ("Mountain Standard Time", "America/Denver"),
            ("Mountain Daylight Time", "America/Denver"),
            ("Central Standard Time", "America/Chicago"),
            ("Central Daylight Time", "America/Chicago"),
            ("Eastern Standard Time", "America/New_York"),
            ("Eastern Daylight Time", "America/New_York"),
            ("Greenwich Mean Time", "Europe/London"),
            ("British Summer Time", "Europe/London"),
            ("Central European Standard Time", "Europe/Paris"),
            ("Central European Summer Time", "Europe/Paris"),
            ("Japan Standard Time", "Asia/Tokyo"),
            ("India Standard Time", "Asia/Kolkata"),
            ("Coordinated Universal Time", "UTC"),
        ],
        key=lambda entry: -len(entry[0]),
    )
)


def _read_zone(reading: Reading, text: str) -> bool:
    try:
        zone = zone_of(text.upper() if reading.ignore_case and len(text) <= 3 else text)
    except ValueError:
        return False
    reading.zone = zone if not zone.is_offset else fixed(zone.offset)
    return True
