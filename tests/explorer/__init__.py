"""The explorer: the shipped code on a simulated directory, through every interleaving.

`scenario` says what a scenario is and `engine` how it is searched. The real ones are in `scenes_*`,
put together by `scene` from actors at their `desk` and from the law in `invariants`; `aftermath`
looks at what they leave behind. `mutants_*` hold the faults that must be caught.
`python -m tests.explorer` runs it all.
"""
