"""The parts of a screen, one to a file."""
