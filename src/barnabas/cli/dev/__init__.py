"""Commands of `barnabas dev`."""
