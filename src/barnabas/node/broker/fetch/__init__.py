"""Fetch: sessions, reads, and the wait for enough bytes."""
