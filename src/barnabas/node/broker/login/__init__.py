"""The gate before the service of a listener with SASL."""
