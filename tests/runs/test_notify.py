"""Messages: sent in the background, tried again, never fatal, never showing where they go."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from maple.core.errors import ConfigError
from maple.runs.notify import TRIES, Message, Notifier, addresses, make_notifier
from maple.runs.secrets import secrets_of, without_secrets
from tests.runs.service import SILENT, Service, running_service


@pytest.fixture
def service() -> Iterator[Service]:
    with running_service() as server:
        yield server


def _notifier(service: Service, told: list[str], more: str = "") -> Notifier:
    notifier = make_notifier([service.address(more)], told.append)
    assert notifier is not None
    notifier._first_wait_s = 0.01
    return notifier


def test_messages_arrive_in_order(service: Service) -> None:
    told: list[str] = []
    notifier = _notifier(service, told)
    for number in range(3):
        notifier.tell(Message(f"title {number}", "body"))
    notifier.close()
    assert [got["title"] for got in service.got] == ["title 0", "title 1", "title 2"]
    assert (notifier.sent, notifier.dropped, told) == (3, 0, [])


@pytest.mark.parametrize("answers", [[429], [500, 500], [0, 429, 500]])
def test_a_service_in_trouble_is_tried_again(answers: list[int], service: Service) -> None:
    service.answers = answers
    told: list[str] = []
    notifier = _notifier(service, told)
    notifier.tell(Message("end", "of the run"))
    notifier.close()
    assert [got["title"] for got in service.got] == ["end"]
    assert told == []


def test_a_service_that_accepts_and_stays_silent_is_tried_so_often_and_given_up(service: Service) -> None:
    service.usual = SILENT
    told: list[str] = []
    notifier = _notifier(service, told, "?rto=0.05")  # how long Apprise waits for an answer
    notifier.tell(Message("end", "of the run"))
    notifier.close(60.0)
    assert (service.tries, notifier.sent, notifier.dropped, len(told)) == (TRIES, 0, 1, 1)


def test_closing_does_not_wait_for_a_service_that_never_answers() -> None:
    tries, answered = list[str](), threading.Event()

    def send(message: Message) -> bool:
        tries.append(message.title)
        return answered.wait(60) and False

    notifier = Notifier(send, [], lambda _: None)
    notifier.tell(Message("start", ""))
    notifier.tell(Message("end", ""))
    notifier.close(0.02)  # returns while the first try is under way
    assert (tries, notifier.sent) == (["start"], 0)
    answered.set()


def test_what_cannot_be_sent_is_dropped_and_told_once_without_the_address(service: Service) -> None:
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
