"""The demo's pipelines as statements of SQL, and the functions that they use."""
