"""The files engine: a board in a plain directory."""
