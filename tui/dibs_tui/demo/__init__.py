"""A board to look at: one with a crew at work on it, and one that stands still."""
