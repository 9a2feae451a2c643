"""The explorer: the shipped code on a simulated directory, through every interleaving.

`scenario` defines what a scenario is, `engine` searches it. The scenarios of the product are in
`scenes_*`: `scene` builds them from actors (each at its `desk`) and from the checks in
`invariants`; `aftermath` checks what they leave behind. `mutants_*` hold the faults that must be
caught. `python -m tests.explorer` runs everything.
"""
