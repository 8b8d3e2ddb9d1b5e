"""Questions of the console to a cluster and a schema registry."""
