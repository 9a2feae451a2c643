"""The widgets of the screens, one per file."""
