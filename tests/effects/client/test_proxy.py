"""A proxy that the environment names is used, unless it leaves the ledger's host out."""

import pytest

from effects.client.transport_http import _proxy_for  # no connection can be looked into


@pytest.mark.parametrize(
    ("environment", "url", "proxy"),
    [
        ({}, "http://ledger.example", None),
        ({"http_proxy": "http://p:3128"}, "http://ledger.example", "http://p:3128"),
        ({"http_proxy": "p:3128"}, "http://ledger.example", "http://p:3128"),
        ({"http_proxy": "http://p:3128"}, "https://ledger.example", None),
        ({"https_proxy": "http://p:3128"}, "https://ledger.example:8443", "http://p:3128"),
        ({"all_proxy": "http://p:3128"}, "https://ledger.example", "http://p:3128"),
        ({"http_proxy": "http://p:1", "no_proxy": "ledger.example"}, "http://ledger.example", None),
        ({"http_proxy": "http://p:1", "no_proxy": "*"}, "http://ledger.example", None),
    ],
)
def test_the_proxy_of_an_address(monkeypatch, environment, url, proxy):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert _proxy_for(url) == proxy
