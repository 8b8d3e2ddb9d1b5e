"""`barnabas metrics`: dashboards of Grafana and alert rules of Prometheus."""
