"""Commands of `barnabas doctor`: the checks."""
