"""What an operator does to tasks: planned from the screen, shown first, reported afterwards."""
