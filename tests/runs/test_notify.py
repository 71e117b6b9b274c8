"""Messages: sent in the background, tried again, never fatal, never showing where they go."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from maple.core.errors import ConfigError
from maple.runs.notify import Message, Notifier, addresses, make_notifier
from maple.runs.secrets import secrets_of, without_secrets


class _Service(ThreadingHTTPServer):
    """Answers with the statuses it was told, then with 200; 0 is no answer at all."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: list[int] = []
        self.got: list[dict[str, str]] = []

    def handle_error(self, *_: object) -> None:
        """A connection that was cut is no error here."""


class _Handler(BaseHTTPRequestHandler):
    server: _Service

    def do_POST(self) -> None:
        content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status = self.server.answers.pop(0) if self.server.answers else 200
        if status == 0:
            self.connection.close()
            return
        if status == 200:
            self.server.got.append(content)
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Be quiet."""


@pytest.fixture
def service() -> Iterator[_Service]:
    server = _Service()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def _address(service: _Service) -> str:
    return f"json://user:verysecretword@127.0.0.1:{service.server_address[1]}/hooktoken12345"


def _notifier(service: _Service, told: list[str]) -> Notifier:
    notifier = make_notifier([_address(service)], told.append)
    assert notifier is not None
    notifier._first_wait_s = 0.01
    return notifier


def test_messages_arrive_in_order(service: _Service) -> None:
    told: list[str] = []
    notifier = _notifier(service, told)
    for number in range(3):
        notifier.tell(Message(f"title {number}", "body"))
    notifier.close()
    assert [got["title"] for got in service.got] == ["title 0", "title 1", "title 2"]
    assert (notifier.sent, notifier.dropped, told) == (3, 0, [])


@pytest.mark.parametrize("answers", [[429], [500, 500], [0, 429, 500]])
def test_a_service_in_trouble_is_tried_again(answers: list[int], service: _Service) -> None:
    service.answers = answers
    told: list[str] = []
    notifier = _notifier(service, told)
    notifier.tell(Message("end", "of the run"))
    notifier.close()
    assert [got["title"] for got in service.got] == ["end"]
    assert told == []


def test_what_cannot_be_sent_is_dropped_and_told_once_without_the_address(service: _Service) -> None:
    service.answers = [500] * 40
    told: list[str] = []
    notifier = _notifier(service, told)
    for number in range(3):
        notifier.tell(Message(f"title {number}", "body"))
    notifier.close()
    assert service.got == []
    assert notifier.dropped == 3
    assert len(told) == 1
    assert "verysecretword" not in told[0]
    assert "hooktoken12345" not in told[0]


def test_progress_is_told_now_and_then_and_gives_way() -> None:
    now, sent = [0.0], []
    gate = threading.Event()

    def send(message: Message) -> bool:
        gate.wait(10)
        sent.append(message.title)
        return True

    notifier = Notifier(send, [], lambda _: None, clock=lambda: now[0])
    for minute in range(10):
        now[0] = 60.0 * minute
        notifier.tell(Message(f"minute {minute}", "", topic="progress"))
        notifier.tell(Message(f"checkpoint {minute}", "", topic="checkpoint"))
    gate.set()
    notifier.close()
    assert sent == ["minute 0", "checkpoint 0", "minute 5", "checkpoint 5"]


def test_nothing_that_send_raises_gets_out() -> None:
    told: list[str] = []
    address = "discord://123456789/verysecrettoken"

    def send(_: Message) -> bool:
        raise RuntimeError(f"no route to {address}")

    notifier = Notifier(send, [address], told.append, first_wait_s=0.001)
    notifier.tell(Message("start", ""))
    notifier.close()
    assert told == ["a message could not be sent (RuntimeError: no route to [hidden]); training goes on"]


def test_addresses_come_from_the_command_or_the_environment() -> None:
    environment = {
        "MAPLE_NOTIFY_URL": "json://a json://b",
        "DISCORD_WEBHOOK_URL": "https://discord.com/api/webhooks/1/x",
    }
    assert addresses(["json://c"], environment) == ["json://c"]
    assert addresses([], environment) == ["json://a", "json://b"]
    assert addresses([], {"DISCORD_WEBHOOK_URL": "x"}) == ["x"]
    assert addresses([], {}) == []
    assert make_notifier([], lambda _: None) is None


def test_an_address_that_makes_no_sense_is_told_of_without_showing_it() -> None:
    with pytest.raises(ConfigError) as caught:
        make_notifier(["carrier-pigeon://coop/verysecretword"], lambda _: None)
    assert "'carrier-pigeon'" in str(caught.value)
    assert "verysecretword" not in str(caught.value)


def test_secrets_are_taken_out_in_parts() -> None:
    hidden = without_secrets(
        "failed: /webhooks/123456789/tokentoken?x", ["https://h.example/webhooks/123456789/tokentoken"]
    )
    assert "tokentoken" not in hidden
    assert "123456789" not in hidden


def test_the_environments_own_secrets_are_known_by_their_names() -> None:
    names = ("AWS_SECRET_ACCESS_KEY", "MAPLE_NOTIFY_URL", "DISCORD_WEBHOOK_URL", "SOME_API_TOKEN")
    environment = dict.fromkeys(names, "longenough") | {"PATH": "/usr/local/bin", "X_PASSWORD": "short"}
    assert secrets_of(environment) == ["longenough"] * 4
