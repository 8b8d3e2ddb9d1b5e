"""The types of the product and of the tests, as `make check` checks them.

By itself mypy takes a minute on a machine that has not run it before. `make test` begins it while
tests are collected, and asks for its result after all other tests.
"""

from __future__ import annotations

import pytest

from support import type_check


@pytest.mark.timeout(600)
def test_types_are_right() -> None:
    code, output = type_check.result()
    assert code == 0, output
