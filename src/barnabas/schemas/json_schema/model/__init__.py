"""The meaning of a schema's keywords as a tree of constraints, one class for each kind.

The compatibility rules are about kinds (`TYPE_CHANGED` is a change of kind), so which keywords make
up which kind is part of the rules. It differs by draft, as Confluent's two libraries differ:
`classic.py` reads drafts 4 to 7, `modern.py` 2019-09 and 2020-12.
"""
