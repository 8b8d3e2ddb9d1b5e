"""Logins of the REST interface."""
