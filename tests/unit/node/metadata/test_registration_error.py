"""The message of a broker whose registration the controller refuses."""

from __future__ import annotations

import pytest

from barnabas.node.metadata.broker_lifecycle import ADVICE, RegistrationError
from barnabas.protocol.errors import ErrorCode


@pytest.mark.parametrize("code", ADVICE)
def test_a_refusal_is_sentences_with_the_way_out(code: ErrorCode) -> None:
    text = str(RegistrationError(code, ADVICE[code]))
    assert text.startswith(f"the controller refused this broker: {code.name}, ")
    assert text.endswith(f". {ADVICE[code]}")
    assert ".." not in text
