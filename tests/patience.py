"""How long a test waits for what must come."""

PATIENCE = 60.0
"""Seconds after which a wait is given up. Only a test that fails waits that long, so it is many
times what a busy machine needs, and still shorter than the `timeout` of pytest."""
