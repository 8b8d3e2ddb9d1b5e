"""Which connectors and tasks there are, who runs them, and in what state they are."""
