"""What reaches the terminal: only cells that changed, and no more than it has taken."""
