"""The demo's Python pipeline, which the SQL server runs beside the statements."""
