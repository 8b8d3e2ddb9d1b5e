"""The live dashboard: reads the pipeline's results from Kafka and shows them in a browser.

A client of any Kafka cluster, through confluent-kafka. Threads read (`readers`, `groups`) into one
`DashboardState`; the web server (`server`) sends snapshots of it as server-sent events.
"""
