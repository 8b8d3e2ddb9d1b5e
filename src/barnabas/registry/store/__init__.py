"""What the registry remembers: the records of `_schemas` and the state that they add up to."""
