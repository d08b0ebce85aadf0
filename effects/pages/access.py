"""Coming in, going out, choosing a workspace, and how pages look. None of it needs script."""

from __future__ import annotations

from typing import Final, override

from django.contrib.auth import login as start_session
from django.contrib.auth import logout as end_session
from django.contrib.auth.forms import AuthenticationForm
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from effects.access import WORKSPACE_IN_SESSION, DeskRequest, membership_required
from effects.models import Membership
from effects.pages import settings as own
from effects.pages import tries
from effects.pages.passwords import note_program, open_sessions
from effects.pages.shell import first_address
from effects.times import duration_words

UNPROCESSABLE: Final = 422
TOO_MANY: Final = 429


class SignInForm(AuthenticationForm):
    """Django's own check of name and password, with words for this desk."""

    error_messages = {
        "invalid_login": "This name and password do not belong together. Capitals count.",
        "inactive": "This account is switched off. Ask an admin.",
    }

    @override
    def __init__(self, request: HttpRequest | None = None, **kwargs: object) -> None:
        super().__init__(request, **kwargs)
        self.label_suffix = ""
        self.fields["username"].label = "E-mail or user name"
        for name in ("username", "password"):
            self.fields[name].widget.attrs["class"] = "form-control"


@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
def login(request: HttpRequest) -> HttpResponse:
    """The sign-in page. Wrong tries are counted; who makes too many waits (429)."""
    onward = _own_address(request, request.POST.get("next") or request.GET.get("next") or "/")
    if request.user.is_authenticated:
        return redirect(onward)
    if request.method == "GET":
        return _login_page(request, SignInForm(request), onward, status=200)
    who = tries.Who(name=request.POST.get("username", ""), address=_address(request))
    wait_seconds = tries.wait_seconds(who)
    if wait_seconds:
        form = SignInForm(request)
        return _login_page(request, form, onward, status=TOO_MANY, wait_seconds=wait_seconds)
    form = SignInForm(request, data=request.POST)
    if not form.is_valid():
        tries.failed(who)
        return _login_page(request, form, onward, status=UNPROCESSABLE)
    tries.succeeded(who)
    start_session(request, form.get_user())
    note_program(request)
    return redirect(onward)


def _login_page(
    request: HttpRequest,
    form: SignInForm,
    onward: str,
    *,
    status: int,
    wait_seconds: int = 0,
) -> HttpResponse:
    wait = duration_words(wait_seconds) if wait_seconds else ""
    context = {"form": form, "next": onward, "wait": wait}
    return render(request, "effects/login.html", context, status=status)


@require_POST
def logout(request: HttpRequest) -> HttpResponse:
    """Ends the session. A link cannot: a picture in a message could then sign people out."""
    end_session(request)
    return redirect("login")


@require_POST
@membership_required
def workspace(request: DeskRequest) -> HttpResponse:
    """Changes the workspace. Another one than the person's own does not exist for them."""
    slug = request.POST.get("workspace", "")
    membership = Membership.objects.filter(user=request.user, workspace__slug=slug).first()
    if membership is None:
        raise Http404("No workspace of yours has this name.")
    request.session[WORKSPACE_IN_SESSION] = membership.workspace_id
    # The page that the person comes from may show something of the workspace that they leave.
    return redirect("/")


@require_http_methods(["GET", "POST"])
@membership_required
def settings(request: DeskRequest) -> HttpResponse:
    """Theme, times and time zone, kept in the session."""
    if request.method == "GET":
        return render(request, "effects/settings.html", _settings_context(request))
    sent = request.POST
    if sent.get("theme") in own.THEMES:
        request.session[own.THEME_IN_SESSION] = sent["theme"]
    if sent.get("times") in own.TIMES:
        request.session[own.TIMES_IN_SESSION] = sent["times"]
    # The menu sends the browser's zone along; it counts only until the person chose one.
    if sent.get("zone") in own.zone_names() and ("chosen" in sent or not own.has_zone(request)):
        request.session[own.ZONE_IN_SESSION] = sent["zone"]
    if sent.get("times") == "local" and not own.has_zone(request):
        return redirect("settings")
    return HttpResponseRedirect(_own_address(request, sent.get("next") or "/settings/"))


def _settings_context(request: DeskRequest) -> dict[str, object]:
    return {
        "zones": own.zone_names(),
        "themes": own.THEMES,
        "times": own.TIMES,
        "sessions": open_sessions(request),
        "zone_is_missing": own.shown_times(request).word == "local" and not own.has_zone(request),
    }


@require_GET
def home(_: HttpRequest) -> HttpResponse:
    """The first page of the desk: the queue, or what this installation has instead."""
    return redirect(first_address())


def _own_address(request: HttpRequest, address: str) -> str:
    """The address if it leads to this desk, or else the first page: no link may lead astray."""
    here = url_has_allowed_host_and_scheme(
        address, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return address if here else "/"


def _address(request: HttpRequest) -> str:
    return str(request.META.get("REMOTE_ADDR", ""))
