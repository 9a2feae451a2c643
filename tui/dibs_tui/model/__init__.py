"""What the dashboard knows of a board: pure, without a screen and without a disk."""
