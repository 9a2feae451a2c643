"""A Python that lacks what macOS lacks, as far as Linux can pretend to: see `sitecustomize`."""
