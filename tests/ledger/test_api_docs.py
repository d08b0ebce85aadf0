"""The API's description: complete for programs, and readable without a script for people."""

import re
from pathlib import Path

import pytest
from django.test import Client

from effects.core.canonical import ARGUMENTS_BYTES_MAX
from effects.core.messages import RESULT_BYTES_MAX
from effects.core.problems import KINDS
from effects.core.storable import RESULT_DEPTH_MAX
from effects.core.vocabulary import AnswerCode
from ledger.management.verification import checks
from ledger.openapi import document, kind_in_words, problem_kinds
from ledger.reading import CLAIM_BODY_BYTES_MAX, REPORT_BODY_BYTES_MAX
from ledger.refusals import OWN_KINDS
from ledger.waiting import WAITERS_MAX

ENDPOINTS = {
    ("post", "/api/v1/claims"),
    ("post", "/api/v1/claims:batch"),
    ("post", "/api/v1/claims:offline"),
    ("get", "/api/v1/claims"),
    ("get", "/api/v1/claims/{reference}"),
    ("get", "/api/v1/claims/{reference}/wait"),
    ("post", "/api/v1/claims/{claim_id}/sent"),
    ("post", "/api/v1/claims/{claim_id}/heartbeat"),
    ("post", "/api/v1/claims/{claim_id}/complete"),
    ("post", "/api/v1/claims/{claim_id}/fail"),
    ("post", "/api/v1/claims/{claim_id}/unknown"),
    ("post", "/api/v1/events"),
    ("post", "/api/v1/streams"),
    ("get", "/api/v1/turns/{conversation}/{index}"),
    ("post", "/api/v1/recover"),
}


@pytest.fixture
def found():
    response = Client().get("/api/openapi.json")
    assert response.status_code == 200
    return response.json()


def test_every_endpoint_is_described_with_body_answer_and_problems(found):
    described = {
        (method, path): operation
        for path, operations in found["paths"].items()
        for method, operation in operations.items()
    }
    assert set(described) == ENDPOINTS
    for (method, path), operation in described.items():
        assert operation["description"], path
        assert operation["security"] == [{"BearerToken": []}]
        assert ("requestBody" in operation) == (method == "post")
        assert {"401", "403", "404", "409", "413", "415", "422", "503"} <= set(
            operation["responses"]
        )


def test_every_reference_leads_somewhere(found):
    names = set(re.findall(r"#/components/schemas/(\w+)", str(found)))

    assert names <= set(found["components"]["schemas"])
    assert {"ClaimRequest", "ClaimAnswer", "Problem", "Complete", "Fail", "Unknown"} <= names


def test_every_problem_code_is_listed(found):
    listed = set(found["components"]["schemas"]["Problem"]["properties"]["code"]["enum"])

    permitted = {AnswerCode.GRANTED, AnswerCode.GRANTED_AGAIN, AnswerCode.REPLAYED}
    assert set(AnswerCode) - permitted <= listed
    assert {kind.code for kind in OWN_KINDS} <= listed
    not_of_the_api = {"stale", "not_offered"}
    assert {kind.code for kind in KINDS} - listed == not_of_the_api


def test_the_claim_is_described_as_strict(found):
    request = found["components"]["schemas"]["ClaimRequest"]

    assert request["additionalProperties"] is False
    assert set(request["required"]) == {"tool", "arguments"}


def test_the_page_names_every_endpoint_code_and_message():
    page = Client().get("/api/docs").content.decode()

    for method, path in ENDPOINTS:
        assert f"{method.upper()} {path}" in page
    for kind in problem_kinds():
        assert f'id="{kind.code}"' in page, "the type of a problem leads to its row"
    for name in ("ClaimRequest", "ClaimAnswer", "Problem"):
        assert f'id="message-{name}"' in page


def test_the_page_needs_no_script_no_style_and_no_other_host():
    response = Client().get("/api/docs")
    page = response.content.decode()

    assert "<script" not in page
    assert "<style" not in page
    assert not re.search(r"\s(style|on\w+)\s*=", page)
    assert not re.search(r"(src|href)=\"(https?:)?//", page)
    assert "unsafe" not in response["Content-Security-Policy"]


def test_ids_are_unique_on_the_page():
    ids = re.findall(r'\sid="([^"]+)"', Client().get("/api/docs").content.decode())

    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string", "minLength": 1, "maxLength": 9}, "string, 1 to 9 characters"),
        (
            {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}]},
            "integer, from 0 or null",
        ),
        ({"enum": ["a", "b"]}, "one of a, b"),
        ({"type": "array", "items": {"type": "string"}}, "list of string"),
        ({"type": "string", "format": "uuid"}, "uuid"),
        ({}, "any value"),
    ],
)
def test_a_schema_in_words(schema, words):
    assert kind_in_words(schema, {}) == words


def test_the_document_is_made_once():
    assert document() is document()


def test_the_handbook_names_every_code_and_the_value_of_every_limit():
    handbook = (Path(__file__).parents[2] / "docs" / "api.md").read_text()

    named = set(re.findall(r"`([a-z_]+)`", handbook))
    assert set(AnswerCode) <= named
    assert {kind.code for kind in problem_kinds()} <= named
    assert f"{CLAIM_BODY_BYTES_MAX // 2**20} MiB for a claim" in handbook
    assert f"{REPORT_BODY_BYTES_MAX // 2**20} MiB for a report" in handbook
    assert f"{ARGUMENTS_BYTES_MAX // 2**10} KiB of UTF-8" in handbook
    assert f"{WAITERS_MAX} requests wait" in handbook
    assert f"longer than {RESULT_BYTES_MAX // 2**20} MiB" in handbook
    assert f"deeper than {RESULT_DEPTH_MAX} levels" in handbook
    for check in checks(clock_may_move=False):
        assert f"| {check.id} |" in handbook
