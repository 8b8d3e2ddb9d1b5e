"""The registry's memory: the records of `_schemas`, and the state that results from them."""
