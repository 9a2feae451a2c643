"""The benchmarks behind every number in docs/benchmarks.md: `python -m tests.bench`."""
