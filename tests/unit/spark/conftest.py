"""Fixtures of the tests of `barnabas.spark`."""

from support.spark import spark

__all__ = ["spark"]
