"""Compatibility of a reader's JSON schema with a writer's, by Confluent's rules.

`compare.py` drives; `objects.py`, `arrays.py`, `combined.py` and `scalars.py` have the rules of
each kind of schema; `kinds.py` says which changes are harmless. Only harmful changes are kept.
"""
