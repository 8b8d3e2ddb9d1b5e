"""The console's requests to a cluster, a schema registry, Connect workers and SQL servers."""
