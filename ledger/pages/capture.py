"""Read a stream: what the product makes of a pasted or uploaded capture. Nothing is stored by it,
unless somebody asks for it."""

from __future__ import annotations

import base64
import binascii
import gzip
import zlib
from typing import Any, Final, override

from django import forms
from django.contrib import messages
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.http.multipartparser import MultiPartParserError
from django.shortcuts import redirect, render
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_http_methods

from effects.access import Ability, DeskRequest, can, membership_required, needs, require
from effects.core.streams import Dispatched, Ending, Protocol
from ledger import queries
from ledger.capture.judging import DISPATCHED_WORDS, ROWS, drawing_of, judged
from ledger.capture.keeping import keep
from ledger.capture.reading import CAPTURE_BYTES_MAX, Capture, CaptureFault, read_capture
from ledger.paths import turn_address
from ledger.turn_parts.lines import TERMINAL_WORDS
from ledger.turn_parts.loading import is_a_turn

UNPROCESSABLE: Final = 422
TOO_LARGE: Final = 413
AROUND_BYTES_MAX: Final = 200_000
"""What a form holds beside a capture."""
CARRIED_CHARACTERS_MAX: Final = 2_000_000
"""Longest form in which a page carries a capture on; a larger one is chosen again."""
ARGUMENTS_CHARACTERS_SHOWN_MAX: Final = 4000
PROVIDERS: Final = {
    "": "Find out by itself",
    Protocol.ANTHROPIC: "Anthropic Messages",
    Protocol.OPENAI_RESPONSES: "OpenAI Responses",
    Protocol.OPENAI_CHAT: "OpenAI Chat Completions",
}
ENDINGS: Final = {
    Ending.CLEAN: "It closed by itself",
    Ending.RESET: "It was reset",
    Ending.CANCELLED: "The reader stopped",
}


class CaptureForm(forms.Form):
    """A capture in one of three forms: pasted, uploaded, or carried on from the page before."""

    text = forms.CharField(
        label="Paste a capture",
        required=False,
        strip=False,
        help_text="The bytes of a stream as they came, or an event of an SDK as JSON in each line.",
        widget=forms.Textarea(
            attrs={
                "class": "form-control mono",
                "rows": 8,
                "spellcheck": "false",
                "autocomplete": "off",
                "placeholder": "event: message_start\ndata: {…}",
            }
        ),
    )
    file = forms.FileField(
        label="Or choose a file",
        required=False,
        help_text="At most 10 MB. A file keeps every byte; a text field cannot.",
        widget=forms.FileInput(attrs={"class": "form-control"}),
    )
    carried = forms.CharField(required=False, widget=forms.HiddenInput)
    provider = forms.ChoiceField(
        label="Provider",
        required=False,
        choices=[(str(word), words) for word, words in PROVIDERS.items()],
        widget=forms.Select(attrs={"class": "form-select"}),
    )
    ending = forms.ChoiceField(
        label="How the connection ended",
        required=False,
        choices=[(str(word), words) for word, words in ENDINGS.items()],
        help_text="It never makes an end of the message.",
        widget=forms.Select(attrs={"class": "form-select"}),
    )

    @override
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""

    @override
    def clean(self) -> dict[str, Any]:
        """The bytes of the capture in `body`, and what was read of them in `capture`."""
        cleaned = super().clean() or {}
        if self.errors:
            return cleaned
        protocol = Protocol(cleaned["provider"]) if cleaned.get("provider") else None
        ending = Ending(cleaned.get("ending") or Ending.CLEAN)
        where = "file" if cleaned.get("file") else "text"
        try:
            cleaned["body"] = self._body(cleaned)
            cleaned["capture"] = read_capture(cleaned["body"], protocol, ending)
        except CaptureFault as fault:
            self.add_error(where, str(fault))
        return cleaned

    def _body(self, cleaned: dict[str, Any]) -> bytes:
        if cleaned.get("file"):
            found = cleaned["file"]
            if found.size > CAPTURE_BYTES_MAX:
                raise CaptureFault(_too_large(found.size))
            return bytes(found.read())
        if cleaned.get("text"):
            return str(cleaned["text"]).encode("utf-8", "surrogatepass")
        return _unpacked(str(cleaned.get("carried") or ""))


def _too_large(size_bytes: int) -> str:
    return (
        f"The capture has {size_bytes} bytes; the limit CAPTURE_BYTES_MAX is {CAPTURE_BYTES_MAX} "
        "(10 MB). Nothing of it was read."
    )


def _packed(body: bytes) -> str:
    """The capture as the next form carries it, exactly; empty if it is too long for that."""
    packed = base64.b64encode(gzip.compress(body, 6)).decode()
    return packed if len(packed) <= CARRIED_CHARACTERS_MAX else ""


def _unpacked(text: str) -> bytes:
    try:
        unpacker = zlib.decompressobj(wbits=31)
        return unpacker.decompress(base64.b64decode(text, validate=True), CAPTURE_BYTES_MAX + 1)
    except (binascii.Error, zlib.error, ValueError):
        return b""


@csrf_exempt
@require_http_methods(["GET", "HEAD", "POST"])
@membership_required
def capture(request: DeskRequest) -> HttpResponse:
    """The form, and what was read. A body that is too large is refused in our own words: the token
    inside it could only be found by reading all of it."""
    if request.method != "POST":
        return _page(request, CaptureForm())
    said = str(request.META.get("CONTENT_LENGTH") or "0")
    length = int(said) if said.isascii() and said.isdecimal() else 0
    if length > CAPTURE_BYTES_MAX + AROUND_BYTES_MAX:
        return _refused(request, _too_large(length))
    try:
        _ = request.POST
    except RequestDataTooBig:
        return _refused(
            request,
            "The pasted text is too long for a form: the limit is 2.5 MB. Save it as a file and "
            "choose that: a file may have 10 MB.",
        )
    except MultiPartParserError:
        return _refused(request, "The form came damaged. Nothing of it was read: send it again.")
    answer = _checked(request)
    assert isinstance(answer, HttpResponse)
    return answer


def _refused(request: DeskRequest, says: str) -> HttpResponse:
    form = CaptureForm({})
    form.add_error("file", says)
    form.errors.pop("text", None)
    return _page(request, form, status=TOO_LARGE)


@csrf_protect
def _checked(request: HttpRequest) -> HttpResponse:
    assert isinstance(request, HttpRequest)
    return _read(request)  # type: ignore[arg-type]  # `membership_required` has made it one


def _read(request: DeskRequest) -> HttpResponse:
    form = CaptureForm(request.POST, request.FILES)
    if not form.is_valid():
        return _page(request, form, status=UNPROCESSABLE)
    found: Capture = form.cleaned_data["capture"]
    place = ("", "")
    if "keep" in request.POST:
        require(request, Ability.APPLY_AGAIN)
        place = (request.POST.get("conversation", ""), request.POST.get("turn", ""))
        fault = _keep(request, found, *place)
        if not fault:
            return redirect(turn_address(place[0], int(place[1])))
        return _page(request, form, found, status=UNPROCESSABLE, keep_fault=fault, keep_place=place)
    return _page(request, form, found)


def _keep(request: DeskRequest, found: Capture, conversation: str, turn: str) -> str:
    """Keeps it with a turn, or says why not."""
    if not conversation.strip():
        return "Name the conversation that it belongs to."
    if not (turn.isascii() and turn.isdecimal() and len(turn) < 10):
        return "Give the number of the turn: 0 for the first one."
    if not is_a_turn(conversation, int(turn)):
        return "No turn can have this name."
    kept = keep(
        request.workspace,
        request.user.pk,
        found,
        conversation=conversation,
        turn_index=int(turn),
    )
    if not kept.fault:
        said = (
            "It was kept with this turn before." if kept.again else "The capture's record is kept."
        )
        messages.success(request, said)
    return kept.fault


def _page(
    request: DeskRequest,
    form: CaptureForm,
    found: Capture | None = None,
    *,
    status: int = 200,
    keep_fault: str = "",
    keep_place: tuple[str, str] = ("", ""),
) -> HttpResponse:
    context: dict[str, Any] = {
        "form": form,
        "may_keep": can(request.role, Ability.APPLY_AGAIN),
        "needs": needs(Ability.APPLY_AGAIN),
        "keep_fault": keep_fault,
        "keep_conversation": keep_place[0],
        "keep_turn": keep_place[1],
    }
    if found is not None:
        context |= _shown(request, form, found)
    return render(request, "ledger/capture.html", context, status=status)


def _shown(request: DeskRequest, form: CaptureForm, found: Capture) -> dict[str, Any]:
    dispatched = _dispatched(request, found)
    answer = judged(found, dispatched, queries.clock())
    record = found.record
    drawing = drawing_of(found)
    return {
        "capture": found,
        "record": record,
        "carried": _packed(form.cleaned_data["body"]),
        "provider": PROVIDERS[found.protocol],
        "end": TERMINAL_WORDS[record.terminal],
        "drawing": drawing,
        "marks": [(placed, placed.mark.href) for placed in drawing.marks],
        "asked": any(name.startswith("dispatched-") for name in request.POST),
        "answer": answer,
        "places": [(words, safe, where is answer.death.where) for where, words, safe in ROWS],
        "calls": [
            {
                "call": call,
                "span": span,
                "arguments": call.raw[:ARGUMENTS_CHARACTERS_SHOWN_MAX],
                "left_out": max(0, len(call.raw) - ARGUMENTS_CHARACTERS_SHOWN_MAX),
                "why_not": str(call.why_not or "").replace("_", " "),
                "state": str(call.state).replace("_", " "),
                "chosen": dispatched.get(call.position, Dispatched.NOT_STARTED),
                "advice": advice,
            }
            for call, span, advice in zip(record.calls, found.spans, answer.calls, strict=True)
        ],
        "choices": DISPATCHED_WORDS.items(),
    }


def _dispatched(request: DeskRequest, found: Capture) -> dict[int, Dispatched]:
    """What had been done with each call, as far as it was said."""
    said = {}
    for call in found.record.calls:
        word = request.POST.get(f"dispatched-{call.position}", "")
        if word in list(Dispatched):
            said[call.position] = Dispatched(word)
    return said
