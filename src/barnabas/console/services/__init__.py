"""What the console asks of a cluster, a registry, Connect workers and a SQL server."""
