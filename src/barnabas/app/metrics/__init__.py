"""GET /metrics: what a node measures, in Prometheus' text format."""
