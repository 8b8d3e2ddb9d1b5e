"""Compatibility of a reader's JSON schema with a writer's, by Confluent's rules.

`compare.py` drives; `rules.py` has the rules of each kind of schema; `changes.py` says which
changes are harmful. Only those are kept.
"""
