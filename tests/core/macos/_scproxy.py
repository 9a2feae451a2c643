"""The proxies of macOS, which `urllib.request` asks for there; this one has none."""


def _get_proxy_settings() -> dict[str, object]:
    return {}


def _get_proxies() -> dict[str, str]:
    return {}
