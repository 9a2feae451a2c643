"""The explorer: the shipped code on a simulated directory, through every interleaving.

`scenario` says how to write a scenario, `engine` how it is searched, `scenarios` and `mutants`
hold what is explored. `python -m tests.explorer` runs it all.
"""
