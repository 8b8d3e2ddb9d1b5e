"""TLS: key stores of every kind, PEM, certificates and contexts."""
