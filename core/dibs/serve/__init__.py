"""A board over a port: locks in OctoStore's language, and `/v1` for everything else.

It is an extra: `http_server`, `watchers`, `connections`, `streams`, `answers` and `browser` need
aiohttp, which `dibs[serve]` brings.
"""
