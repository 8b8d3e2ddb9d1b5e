"""Handlers of the routes: one module for each resource of Confluent's."""
