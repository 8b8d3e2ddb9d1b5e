"""The console's HTTP: JSON for the page that `static` holds."""
