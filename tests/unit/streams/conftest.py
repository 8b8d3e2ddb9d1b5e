"""Fixtures of the tests of `barnabas.streams`."""

from support.spark import spark

__all__ = ["spark"]
