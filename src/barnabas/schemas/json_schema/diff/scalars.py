"""Rules for strings, numbers, enumerations and constants."""

from decimal import Context, Decimal, InvalidOperation

from barnabas.schemas.json_schema.diff.changes import Changes
from barnabas.schemas.json_schema.model.kinds import (
    ConstSchema,
    EnumSchema,
    NumberSchema,
    StringSchema,
)

_DIVISION = Context(prec=2_000, traps=[InvalidOperation])


def compare_strings(changes: Changes, old: StringSchema, new: StringSchema) -> None:
    """Lengths and pattern."""
    changes.limit("maxLength", "MAX_LENGTH", old.max_length, new.max_length)
    changes.limit("minLength", "MIN_LENGTH", old.min_length, new.min_length)
    if old.pattern != new.pattern:
        how = "ADDED" if old.pattern is None else "REMOVED" if new.pattern is None else "CHANGED"
        changes.add(f"PATTERN_{how}", "pattern")


def compare_numbers(changes: Changes, old: NumberSchema, new: NumberSchema) -> None:
    """Limits, divisors, and integers against numbers."""
    changes.limit("maximum", "MAXIMUM", old.maximum, new.maximum)
    changes.limit("minimum", "MINIMUM", old.minimum, new.minimum)
    changes.limit(
        "exclusiveMaximum", "EXCLUSIVE_MAXIMUM", old.exclusive_maximum, new.exclusive_maximum
    )
    changes.limit(
        "exclusiveMinimum", "EXCLUSIVE_MINIMUM", old.exclusive_minimum, new.exclusive_minimum
    )
    if old.multiple_of != new.multiple_of:
        if old.multiple_of is None:
            how = "ADDED"
        elif new.multiple_of is None:
            how = "REMOVED"
        elif _divides(old.multiple_of, new.multiple_of):
            how = "EXPANDED"
        else:
            how = "REDUCED" if _divides(new.multiple_of, old.multiple_of) else "CHANGED"
        changes.add(f"MULTIPLE_OF_{how}", "multipleOf")
    if old.is_integer != new.is_integer:
        changes.add("TYPE_EXTENDED" if old.is_integer else "TYPE_NARROWED")


def compare_enums(changes: Changes, old: EnumSchema, new: EnumSchema) -> None:
    """Values that were and are allowed."""
    if old.values != new.values:
        if old.values < new.values:
            how = "EXTENDED"
        else:
            how = "NARROWED" if new.values < old.values else "CHANGED"
        changes.add(f"ENUM_ARRAY_{how}", "enum")


def compare_constants(changes: Changes, old: ConstSchema, new: ConstSchema) -> None:
    """The one value that is allowed."""
    if old.value != new.value:
        changes.add("ENUM_ARRAY_CHANGED", "const")


def _divides(divisor: int | Decimal, number: int | Decimal) -> bool:
    """Return whether the number is a multiple. Numbers of too many digits are not multiples."""
    try:
        return not _DIVISION.remainder(Decimal(number), Decimal(divisor))
    except InvalidOperation:
        return False
