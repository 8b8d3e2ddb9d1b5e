"""What each route does: one module a resource of Confluent's."""
