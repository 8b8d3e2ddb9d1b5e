"""Checks of columns and properties that several formats make, and how they name columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from barnabas.sql.errors import AnalysisError
from barnabas.sql.schema import Column, Part
from barnabas.sql.types import STRING, Array, Map, SqlType, Struct


def check_properties(
    format_name: str, properties: Mapping[str, str], supported: Iterable[str]
) -> None:
    """Raise AnalysisError for a property that the format does not know, or that is empty."""
    unknown = [name for name in properties if name not in set(supported)]
    if unknown:
        raise AnalysisError(
            f"{format_name} does not support the following configs: [{', '.join(unknown)}]"
        )
    for name, value in properties.items():
        if not value.strip():
            shown = ", ".join(f"{key}={text}" for key, text in properties.items())
            raise AnalysisError(f"{name} cannot be empty. Format configuration: {{{shown}}}")


def has_other_than_string_keys(columns: Sequence[Column]) -> bool:
    """Return whether a column has, at any depth, a map whose keys are not STRING."""
    return any(_other_keys(column.type) for column in columns)


def _other_keys(sql_type: SqlType) -> bool:
    if isinstance(sql_type, Map):
        return sql_type.key != STRING or _other_keys(sql_type.value)
    if isinstance(sql_type, Array):
        return _other_keys(sql_type.item)
    if isinstance(sql_type, Struct):
        return any(_other_keys(field.type) for field in sql_type.fields)
    return False


def columns_text(columns: Sequence[Column]) -> str:
    """Columns as a list in brackets, as messages about formats have them."""
    texts = [f"{column} KEY" if column.part is Part.KEY else str(column) for column in columns]
    return f"[{', '.join(texts)}]"
