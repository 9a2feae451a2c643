"""`dibs.pyz`: the core, the command line and `run` in one file that needs only Python.

`python -m one_file` builds it; nothing of this package is a part of the wheel.
"""
