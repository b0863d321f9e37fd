"""One record, drawn in several ways. Nothing here knows a model library."""
