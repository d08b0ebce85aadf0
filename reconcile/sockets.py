"""Sockets of the desk. They only say "look again"; the page then asks the ordinary view."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
