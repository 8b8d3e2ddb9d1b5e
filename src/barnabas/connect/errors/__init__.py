"""Errors of records and tasks, and their handling."""
