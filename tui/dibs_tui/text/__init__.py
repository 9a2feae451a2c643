"""Text that is safe and short on a terminal."""
