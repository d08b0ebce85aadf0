"""The door for agents as a real process: the API takes a way of its own through Django, on which
nothing is missing that an agent or a proxy relies on."""

import http.client
from dataclasses import dataclass
from email.message import Message
from urllib.parse import urlsplit

import pytest

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass
class Answer:
    status: int
    headers: Message
    body: bytes


@pytest.fixture
def ask(live_api):
    """A question to the door over a connection of its own, with headers of ours alone."""
    where = urlsplit(live_api)

    def asked(path, host=where.netloc):
        connection = http.client.HTTPConnection(where.hostname, where.port, timeout=10)
        connection.putrequest("GET", path, skip_host=True)
        connection.putheader("Host", host)
        connection.endheaders()
        response = connection.getresponse()
        answer = Answer(response.status, response.headers, response.read())
        connection.close()
        return answer

    return asked


def test_an_answer_of_the_api_says_its_length_and_is_guessed_at_by_nobody(ask):
    answer = ask("/api/v1/claims/cf1-0")

    assert answer.status == 401
    assert int(answer.headers["Content-Length"]) == len(answer.body)
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert "Set-Cookie" not in answer.headers


def test_a_host_that_is_not_ours_is_refused_by_the_api_too(ask):
    # Not even the token is asked for. (Its page is a 500 where no static files were collected.)
    assert ask("/api/v1/claims/cf1-0", host="elsewhere.example").status in {400, 500}


def test_a_page_takes_the_whole_way(ask):
    answer = ask("/healthz")

    assert answer.status == 200
    assert "default-src" in answer.headers["Content-Security-Policy"]
