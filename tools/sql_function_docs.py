"""Writes docs/sql/functions.md from the catalog: `python tools/sql_function_docs.py`."""

import re
from collections.abc import Iterable
from pathlib import Path

from barnabas.sql.functions.built_in import functions
from barnabas.sql.functions.catalog import Function
from barnabas.sql.functions.signature_text import parse_signature

PAGE = Path(__file__).parents[1] / "docs" / "sql" / "functions.md"

HEAD = """\
# Functions of SQL

`tools/sql_function_docs.py` writes this page from the functions in
`src/barnabas/sql/functions/`; a test checks that they agree. Names, parameters and results
are those of ksqlDB; `DESCRIBE FUNCTION name;` shows the same.

In signatures a capital letter such as `T` stands for any type, the same one wherever it occurs;
`...` follows a parameter that takes any number of arguments, `!` one that must be a literal.
`DECIMAL` stands for one of any precision and scale. NULL as an argument gives NULL unless a
description says otherwise, and so does an error, which is then noted in the processing log.
"""

LAST = ("AGGREGATE", "TABLE")
"""Categories that stand after the scalar functions."""

MARKED = re.compile(r"[*|<]")


def main() -> None:
    """Write the page."""
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(text(), encoding="utf-8")


def text() -> str:
    """The page."""
    categories: dict[str, list[Function]] = {}
    for function in sorted(functions().values(), key=lambda function: function.name.upper()):
        categories.setdefault(function.category, []).append(function)
    names = sorted(categories, key=lambda category: (category in LAST, category))
    index = [f"- {_title(c)}: {_links(categories[c])}" for c in names]
    sections = [f"## {_title(c)}\n\n" + "\n".join(map(_section, categories[c])) for c in names]
    return "\n".join([HEAD, "\n".join(index) + "\n", *sections])


def _title(category: str) -> str:
    return category if category in ("JSON", "URL") else category.capitalize()


def _links(members: Iterable[Function]) -> str:
    return ", ".join(f"[{f.name.upper()}](#{f.name.lower()})" for f in members)


def _section(function: Function) -> str:
    name = function.name.upper()
    signatures = [
        *(overload.signature for overload in function.scalars),
        *(overload.signature for overload in function.tables),
        *(overload.signature for overload in function.aggregates),
    ]
    calls = [f"{name}{' '.join(signature.split())}" for signature in signatures]
    parts = [f"### {name}", _escaped(function.description)]
    parts.append("```\n" + "\n".join(calls) + "\n```")
    notes = [f"- {note}" for note in _notes(function)]
    if notes:
        parts.append("\n".join(notes))
    return "\n\n".join(parts) + "\n"


def _escaped(description: str) -> str:
    """The description, plain in Markdown but for what stands in back quotes."""
    parts = description.split("`")
    parts[::2] = [MARKED.sub(r"\\\g<0>", part) for part in parts[::2]]
    return "`".join(parts)


def _notes(function: Function) -> list[str]:
    """What variations do and parameters are, each told once."""
    meanings: dict[str, dict[str, None]] = {}
    for overload in function.scalars:
        for parameter in parse_signature(overload.signature).parameters:
            meaning = overload.parameters.get(parameter.name)
            if meaning is not None:
                meanings.setdefault(parameter.name, {})[meaning] = None
    variations = dict.fromkeys(o.description for o in function.scalars if o.description)
    return [*variations, *(f"`{name}`: {' / '.join(told)}" for name, told in meanings.items())]


if __name__ == "__main__":
    main()
