"""Addresses of the desk."""

from django.urls import URLPattern, URLResolver, path

from reconcile.pages import tools

urlpatterns: list[URLPattern | URLResolver] = [
    path("tools/", tools.tools, name="tools"),
    path("tools/new/", tools.new_tool, name="tool-new"),
    path("tools/<int:tool_id>/", tools.tool, name="tool"),
]
