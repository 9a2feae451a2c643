"""Makes the pictures in this folder."""
