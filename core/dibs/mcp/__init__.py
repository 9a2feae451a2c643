"""`dibs mcp`: a board as the tools of an agent, over the Model Context Protocol.

Only `server`, `pipes` and `taking` import the SDK, an optional dependency.
"""
