"""A person's own password and sessions: set by the link of an admin, changed, ended elsewhere."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final, override

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.forms import PasswordChangeForm, SetPasswordForm
from django.contrib.auth.models import User
from django.contrib.auth.views import PasswordResetConfirmView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from effects import people
from effects.access import DeskRequest, membership_required
from effects.models import DeskSession
from effects.pages import tries
from effects.sessions import PROGRAM, PROGRAM_CHARACTERS_MAX, SIGNED_IN_AT, end_sessions

UNPROCESSABLE: Final = 422
TOO_MANY: Final = 429
SESSIONS_SHOWN_MAX: Final = 20
_LABELS: Final = {
    "old_password": "Password until now",
    "new_password1": "New password",
    "new_password2": "New password again",
}


def _with_our_words(form: SetPasswordForm[User]) -> None:
    form.label_suffix = ""
    for name, field in form.fields.items():
        field.label = _LABELS[name]
        field.widget.attrs["class"] = "form-control"
        field.widget.attrs.pop("autofocus", None)
    form.fields[
        "new_password1"
    ].help_text = (
        "At least 8 characters, not only digits, no common password, nothing like your name."
    )
    form.fields["new_password2"].help_text = ""


class Join(PasswordResetConfirmView):
    """The page behind the link of a new member: a password is set once, and the person is in.

    The secret part of the address is moved into the session at once, so that it is in no history,
    no referrer and no picture of the screen.
    """

    template_name = "effects/join.html"
    post_reset_login = True
    success_url = reverse_lazy("home")

    @override
    @method_decorator(never_cache)
    def dispatch(self, *args: Any, **kwargs: Any) -> Any:
        return super().dispatch(*args, **kwargs)

    @override
    def get_user(self, uidb64: str) -> Any:
        """Nobody for an account that is switched off, as for one that never was."""
        user = super().get_user(uidb64)
        return user if isinstance(user, User) and user.is_active else None

    @override
    def get_form(self, form_class: Any = None) -> Any:
        form = super().get_form(form_class)
        _with_our_words(form)
        return form

    @override
    def form_invalid(self, form: Any) -> HttpResponse:
        answer = super().form_invalid(form)
        answer.status_code = UNPROCESSABLE
        return answer

    @override
    def form_valid(self, form: Any) -> HttpResponse:
        answer = super().form_valid(form)
        note_program(self.request)
        people.record_password(form.user, datetime.now(UTC))
        messages.success(self.request, "Your password is set, and you are signed in.")
        return answer


@never_cache
@sensitive_post_parameters("old_password", "new_password1", "new_password2")
@require_http_methods(["GET", "POST"])
@membership_required
def password(request: DeskRequest) -> HttpResponse:
    """Changes one's own password; every other session of the person ends with the old one."""
    form = PasswordChangeForm(request.user, request.POST or None)
    _with_our_words(form)
    status, wait = 200, False
    if request.method == "POST":
        # Whoever finds an open desk must not be able to guess the password there.
        address = str(request.META.get("REMOTE_ADDR", ""))
        who = tries.Who(name=request.user.get_username(), address=address)
        wait, status = bool(tries.wait_seconds(who)), TOO_MANY
        if not wait and form.is_valid():
            tries.succeeded(who)
            update_session_auth_hash(request, form.save())
            end_sessions(request.user.pk, but=request.session)
            messages.success(request, "Your password is changed. You are signed out elsewhere.")
            return redirect("settings")
        if not wait:
            status = UNPROCESSABLE
            if "old_password" in form.errors:
                tries.failed(who)
    context = {"form": form, "wait": wait}
    return render(request, "effects/password.html", context, status=status)


@require_POST
@membership_required
def end_others(request: DeskRequest) -> HttpResponse:
    """Signs the person out everywhere but here."""
    ended = end_sessions(request.user.pk, but=request.session)
    messages.success(request, f"Signed out in {ended} other place{'' if ended == 1 else 's'}.")
    return redirect("settings")


def note_program(request: HttpRequest) -> None:
    """Keeps with the session what a person needs to recognise it by."""
    said = request.headers.get("User-Agent", "")
    request.session[PROGRAM] = "".join(char for char in said if char.isprintable())[
        :PROGRAM_CHARACTERS_MAX
    ]
    request.session[SIGNED_IN_AT] = datetime.now(UTC).isoformat()


def open_sessions(request: DeskRequest) -> list[dict[str, Any]]:
    """The person's sessions that are not over, this one first, then the newest."""
    kept = DeskSession.objects.filter(user_id=request.user.pk, expire_date__gt=datetime.now(UTC))
    rows = []
    for session in kept.order_by("-expire_date")[:SESSIONS_SHOWN_MAX]:
        said = session.said
        at = said.get(SIGNED_IN_AT)
        rows.append(
            {
                "program": program_words(str(said.get(PROGRAM, ""))),
                "at": datetime.fromisoformat(at) if at else None,
                "here": session.session_key == request.session.session_key,
            }
        )
    return sorted(rows, key=lambda row: not row["here"])


def program_words(agent: str) -> str:
    """What a browser calls itself, in two words: "Firefox on Linux"."""
    browsers = {"Edg/": "Edge", "Firefox/": "Firefox", "Chrome/": "Chrome", "Safari/": "Safari"}
    systems = {
        "Android": "Android",
        "iPhone": "iPhone",
        "iPad": "iPad",
        "Windows": "Windows",
        "Mac OS": "macOS",
        "Linux": "Linux",
    }
    browser = next((word for sign, word in browsers.items() if sign in agent), "")
    system = next((word for sign, word in systems.items() if sign in agent), "")
    if not browser:
        return agent[:60] or "a program that does not say its name"
    return f"{browser} on {system}" if system else browser
