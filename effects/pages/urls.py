"""Addresses of the ground floor's pages."""

from django.urls import URLPattern, URLResolver, path

from effects.pages import access

urlpatterns: list[URLPattern | URLResolver] = [
    path("", access.home, name="home"),
    path("login/", access.login, name="login"),
    path("logout/", access.logout, name="logout"),
    path("workspace/", access.workspace, name="workspace"),
    path("settings/", access.settings, name="settings"),
]
