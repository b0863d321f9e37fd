"""Numbers computed from a record. Each measure is defined once."""
