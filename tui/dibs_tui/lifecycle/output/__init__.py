"""Output to the terminal: sends the newest picture, and no faster than the terminal takes it."""
