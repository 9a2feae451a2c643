"""Hearing of changes on a board's directory."""
