"""The demo boards: one with worker processes, and a fixed one without."""
