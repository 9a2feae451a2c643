"""The benchmarks behind every number in the README: `python -m tests.bench`."""
