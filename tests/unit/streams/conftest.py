"""What the pipeline's tests share."""

from support.spark import spark

__all__ = ["spark"]
