"""The registry's rules as pure decisions: a state and a request in, records and an answer out."""
