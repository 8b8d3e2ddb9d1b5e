"""What the chaos modules share."""

import os

import pytest


@pytest.fixture
def soak_minutes() -> float:
    """How long a long campaign may last (`make soak MINUTES=…`)."""
    return float(os.environ.get("MINUTES", "5"))
