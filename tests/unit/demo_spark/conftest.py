"""Fixtures of the tests of the demo's stories."""

from support.spark import spark

__all__ = ["spark"]
