"""Addresses of the ground floor's pages."""

from django.urls import URLPattern, URLResolver, path

from effects.pages import access, passwords, people, workspace_settings

urlpatterns: list[URLPattern | URLResolver] = [
    path("", access.home, name="home"),
    path("login/", access.login, name="login"),
    path("logout/", access.logout, name="logout"),
    path("workspace/", access.workspace, name="workspace"),
    path(
        "workspace/settings/",
        workspace_settings.workspace_settings,
        name="workspace-settings",
    ),
    path("settings/", access.settings, name="settings"),
    path("settings/password/", passwords.password, name="password"),
    path("settings/sessions/end/", passwords.end_others, name="sessions-end"),
    path("join/<uidb64>/<token>/", passwords.Join.as_view(), name="join"),
    path("people/", people.list_people, name="people"),
    path("people/add/", people.add, name="people-add"),
    path("people/<int:membership_id>/", people.person, name="person"),
    path("people/<int:membership_id>/role/", people.change_role, name="person-role"),
    path("people/<int:membership_id>/deactivate/", people.deactivate, name="person-deactivate"),
    path("people/<int:membership_id>/link/", people.new_link, name="person-link"),
]
