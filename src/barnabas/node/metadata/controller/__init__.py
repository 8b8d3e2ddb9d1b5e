"""The controller's decisions: pure functions from image and request to records and response."""
