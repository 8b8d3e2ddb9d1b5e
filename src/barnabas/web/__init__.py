"""HTTP servers: accepting connections, bodies, passwords, and the guard against other sites."""
