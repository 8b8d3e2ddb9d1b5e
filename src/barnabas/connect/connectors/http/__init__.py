"""Sources and sinks that speak HTTP: records from a web service's pages, records to its address."""
