"""The catalog of built-in functions: every declaration is sound."""

from __future__ import annotations

import pytest

from barnabas.sql.functions.built_in import functions
from barnabas.sql.functions.catalog import Function
from barnabas.sql.functions.signature_text import parse_signature


@pytest.mark.parametrize("function", functions().values(), ids=lambda function: function.name)
def test_declaration(function: Function) -> None:
    assert functions()[function.name.upper()] is function
    assert function.description.endswith(".")
    known = set()
    for overload in function.scalars:
        signature = parse_signature(overload.signature)
        assert signature.result is not None
        known |= {parameter.name for parameter in signature.parameters}
    for overload in function.scalars:
        assert set(overload.parameters) <= known
