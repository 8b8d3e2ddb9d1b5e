"""The two stories as Spark queries: what they compute, and the process that runs them."""
