"""Any data source of PySpark as a connector: a class on its Python Data Source API, or a format."""
