"""The reference pages and the man pages, made from the parsers and the docstrings.

`python -m reference` writes docs/reference; nothing of this package is a part of the wheel, but
the wheel is built with it and has the man pages.
"""
