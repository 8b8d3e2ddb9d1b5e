"""What the stories' tests share."""

from support.spark import spark

__all__ = ["spark"]
