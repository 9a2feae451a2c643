"""The measurements behind every number that the README quotes: `python -m tests.bench`."""
