"""The only package that talks to a watched board."""
