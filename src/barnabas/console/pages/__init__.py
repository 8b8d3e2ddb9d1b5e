"""The console's HTTP interface: JSON for the page in `static`."""
