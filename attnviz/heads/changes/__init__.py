"""Two models compared, head by head."""
