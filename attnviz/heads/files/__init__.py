"""What was measured of heads, as files."""
