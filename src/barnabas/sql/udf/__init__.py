"""User-defined SQL functions in Python, declared with `@udf`, `@udaf` and `@udtf`.

docs/sql/udf.md is the guide; `load_extensions` finds them for servers and tests.
"""

from barnabas.sql.udf.aggregates import udaf
from barnabas.sql.udf.declaring import DeclarationError
from barnabas.sql.udf.loading import ExtensionError, load_extensions
from barnabas.sql.udf.merging import functions_of
from barnabas.sql.udf.scalars import udf, udtf

__all__ = [
    "DeclarationError",
    "ExtensionError",
    "functions_of",
    "load_extensions",
    "udaf",
    "udf",
    "udtf",
]
