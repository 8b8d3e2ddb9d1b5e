"""Errors of pipelines and of records."""

from __future__ import annotations


class PipelineError(Exception):
    """A pipeline cannot be built, started or go on; the message says why and what helps."""


class MalformedRecordError(PipelineError):
    """A record cannot be read, and the pipeline has no topic for dead letters."""
