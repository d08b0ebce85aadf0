"""What the environment says, and what in it is nonsense."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from effects.checks import judge_environment, judge_secret_key
from effects.environment import Environment, read_environment, with_running_services
from effects.postgres_url import database_settings

BASE = Path("/srv/counterfoil")
LONG_KEY = "k" * 50


def read(**values: str) -> Environment:
    return read_environment(values, base=BASE)


def test_saying_nothing_means_the_embedded_services_and_the_usual_ports():
    said = read()

    assert said.nonsense == ()
    assert (said.desk_port, said.api_port, said.sandbox_port) == (8000, 8001, 8002)
    assert (said.database_url, said.broker_url, said.secret_key) == (None, None, None)
    assert said.var == BASE / "var"
    assert (said.desk_url, said.api_url) == ("http://127.0.0.1:8000", "http://127.0.0.1:8001")


@pytest.mark.parametrize(
    ("values", "check"),
    [
        pytest.param({"COUNTERFOIL_DESK_PORT": "eight"}, "effects.E001", id="a word as a port"),
        pytest.param({"COUNTERFOIL_API_PORT": "0"}, "effects.E001", id="port nought"),
        pytest.param({"COUNTERFOIL_API_PORT": "65536"}, "effects.E001", id="one port too high"),
        pytest.param({"COUNTERFOIL_API_PORT": "٨٠٠١"}, "effects.E001", id="other digits"),
        pytest.param({"COUNTERFOIL_API_PORT": "8000"}, "effects.E002", id="two doors, one port"),
        pytest.param(
            {"DATABASE_URL": "mysql://h/db", "COUNTERFOIL_SECRET_KEY": LONG_KEY},
            "effects.E003",
            id="another database",
        ),
        pytest.param(
            {"DATABASE_URL": "postgresql://h:port/db", "COUNTERFOIL_SECRET_KEY": LONG_KEY},
            "effects.E003",
            id="a database port in words",
        ),
        pytest.param({"REDIS_URL": "localhost:6379"}, "effects.E004", id="redis without a scheme"),
        pytest.param({"CELERY_BROKER_URL": "sqs://"}, "effects.E005", id="a broker nobody tried"),
        pytest.param({"COUNTERFOIL_SECRET_KEY": "short"}, "effects.E006", id="a short secret"),
        pytest.param({"COUNTERFOIL_DEBUG": "maybe"}, "effects.E007", id="a switch half on"),
        pytest.param(
            {"COUNTERFOIL_DESK_URL": "desk.example.com"}, "effects.E008", id="an address half said"
        ),
    ],
)
def test_nonsense_is_an_error_with_an_id_and_a_hint(values: dict[str, str], check: str):
    errors = judge_environment(read(**values))

    assert [error.id for error in errors] == [check]
    assert errors[0].hint
    assert errors[0].is_serious()


def test_all_nonsense_is_said_at_once():
    said = read(COUNTERFOIL_DESK_PORT="x", REDIS_URL="x", COUNTERFOIL_DEBUG="x")

    assert [n.id for n in said.nonsense] == ["effects.E001", "effects.E007", "effects.E004"] or len(
        said.nonsense
    ) == 3


@pytest.mark.parametrize("name", ["DATABASE_URL", "REDIS_URL", "CELERY_BROKER_URL"])
def test_a_password_in_a_broken_url_is_not_repeated(name: str):
    said = read(**{name: "nonsense://user:hunter2@host/"}, COUNTERFOIL_SECRET_KEY=LONG_KEY)

    assert said.nonsense
    assert "hunter2" not in str([asdict(n) for n in said.nonsense])


def test_redis_is_the_broker_unless_another_is_said():
    assert read(REDIS_URL="redis://r/0").broker_url == "redis://r/0"
    both = read(REDIS_URL="redis://r/0", CELERY_BROKER_URL="amqp://q//")
    assert (both.broker_url, both.redis_url) == ("amqp://q//", "redis://r/0")


def test_a_port_that_was_said_is_remembered_as_said():
    assert read(COUNTERFOIL_API_PORT="9001").ports_said == {"COUNTERFOIL_API_PORT"}


class TestCommandsBesideARunningStack:
    def write(self, var: Path, text: str) -> None:
        (var / "running.json").write_text(text)

    def test_find_its_services(self, tmp_path: Path):
        self.write(tmp_path, json.dumps({"DATABASE_URL": "postgresql://demo/", "A": "1"}))

        found = with_running_services({"A": "2"}, tmp_path)

        assert found == {"DATABASE_URL": "postgresql://demo/", "A": "2"}

    def test_with_a_database_of_their_own_get_nothing_of_it(self, tmp_path: Path):
        self.write(tmp_path, json.dumps({"CELERY_BROKER_URL": "redis://demo/"}))

        found = with_running_services({"DATABASE_URL": "postgresql://live/"}, tmp_path)

        assert found == {"DATABASE_URL": "postgresql://live/"}

    @pytest.mark.parametrize("text", ["", "{", "[]", "null"])
    def test_survive_a_damaged_file(self, tmp_path: Path, text: str):
        self.write(tmp_path, text)

        assert with_running_services({}, tmp_path) == {}


@pytest.mark.parametrize(
    ("values", "warned"),
    [
        pytest.param({"DATABASE_URL": "postgresql://h/db"}, ["effects.W001"], id="own, no key"),
        pytest.param({}, [], id="all on this machine"),
        pytest.param(
            {"DATABASE_URL": "postgresql://h/db", "COUNTERFOIL_SECRET_KEY": LONG_KEY},
            [],
            id="own database, own key",
        ),
    ],
)
def test_a_key_that_a_machine_made_up_is_warned_of_where_there_may_be_several(
    values: dict[str, str], warned: list[str]
):
    assert [w.id for w in judge_secret_key(read(**values))] == warned


def test_a_database_url_keeps_what_libpq_understands():
    entry = database_settings(
        "postgresql://us%40er:p%2Fw@db.example:6432/na%20me?sslmode=require", keep_seconds=60
    )

    assert entry["USER"] == "us@er"
    assert entry["PASSWORD"] == "p/w"
    assert (entry["HOST"], entry["PORT"], entry["NAME"]) == ("db.example", 6432, "na me")
    assert entry["OPTIONS"]["sslmode"] == "require"
    assert entry["OPTIONS"]["isolation_level"].name == "READ_COMMITTED"


def test_a_database_url_may_name_a_socket():
    entry = database_settings("postgresql:///app?host=/run/postgresql", keep_seconds=0)

    assert (entry["HOST"], entry["PORT"], entry["NAME"]) == ("/run/postgresql", "", "app")
    assert entry["CONN_HEALTH_CHECKS"] is False
