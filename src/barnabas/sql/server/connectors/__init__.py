"""Statements about connectors, which a Connect worker answers."""
