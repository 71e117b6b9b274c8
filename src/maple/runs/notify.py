"""Messages to wherever a person looks: Discord, Slack, mail, anything that Apprise knows.

They are sent by a thread of their own and never stop or slow a run: what cannot be delivered is tried again for a
while, then dropped and counted. Addresses are secrets. They live in this module's memory alone, and whatever an
exception says is cleaned of them before it is shown.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from maple.core.errors import ConfigError, MissingExtraError
from maple.perf.spans import IDLE, span
from maple.runs.secrets import without_secrets

__all__ = ["Message", "Notifier", "address_variable", "addresses", "make_notifier"]

TRIES = 4
FIRST_WAIT_S = 2.0
TOPIC_APART_S = 300.0
BACKLOG = 16


@dataclass(frozen=True, slots=True)
class Message:
    """What is told."""

    title: str
    body: str
    kind: str = "info"  # info, success, warning or failure
    topic: str = ""  # what has one is told only now and then, each topic by itself, and dropped first


def address_variable(environment: Mapping[str, str]) -> str | None:
    """The variable that says where to send messages: Maple's own, else Discord's."""
    return next((name for name in ("MAPLE_NOTIFY_URL", "DISCORD_WEBHOOK_URL") if environment.get(name)), None)


def addresses(given: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Where to send messages: as given, else as the environment says, where spaces separate several."""
    name = address_variable(environment)
    return list(given) or (environment[name].split() if name else [])


def make_notifier(urls: Sequence[str], warn: Callable[[str], None]) -> Notifier | None:
    """A notifier for these addresses; None if there are none, an error if one cannot be understood."""
    if not urls:
        return None
    try:
        import apprise
    except ImportError:
        raise MissingExtraError("messages need Apprise: pip install 'maple-rl[notify]'") from None
    logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)  # its log lines hold addresses
    channel = apprise.Apprise()
    for number, url in enumerate(urls, 1):
        if not channel.add(url):
            scheme = urlsplit(url).scheme or "none"
            raise ConfigError(
                f"address {number} of --notify cannot be used (its scheme is {scheme!r}); Apprise's documentation has "
                "a list, for example discord://ID/TOKEN or mailto://USER:PASSWORD@HOST"
            )

    def send(message: Message) -> bool:
        return bool(channel.notify(title=message.title, body=message.body, notify_type=message.kind))

    return Notifier(send, urls, warn)


class Notifier:
    """Sends messages one after the other, in the background."""

    def __init__(
        self,
        send: Callable[[Message], bool],
        secrets: Sequence[str],
        warn: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        first_wait_s: float = FIRST_WAIT_S,
    ) -> None:
        self._send, self._secrets, self._warn, self._clock = send, list(secrets), warn, clock
        self._first_wait_s = first_wait_s
        self._queue: queue.Queue[Message | None] = queue.Queue(BACKLOG)
        self._last: dict[str, float] = {}  # by topic, when it was last told of
        self._hurry = threading.Event()
        self.sent = self.dropped = 0
        self._thread = threading.Thread(target=self._live, name="maple-notify", daemon=True)
        self._thread.start()

    def tell(self, message: Message) -> None:
        """Hand over a message; returns at once."""
        if message.topic:
            if self._clock() - self._last.get(message.topic, float("-inf")) < TOPIC_APART_S:
                return
            self._last[message.topic] = self._clock()
        while True:
            try:
                self._queue.put_nowait(message)
                return
            except queue.Full:
                if message.topic:
                    self.dropped += 1
                    return
                self._drop_one()

    def _drop_one(self) -> None:
        try:
            self._queue.get_nowait()
            self.dropped += 1
        except queue.Empty:
            pass

    def close(self, timeout_s: float = 15.0) -> None:
        """Send what is left, as far as that goes in this time."""
        while True:
            try:
                self._queue.put_nowait(None)
                break
            except queue.Full:
                self._drop_one()
        self._thread.join(timeout_s / 2)
        self._hurry.set()  # no more waiting between tries
        self._thread.join(timeout_s / 2)

    def _live(self) -> None:
        with span("notify"):
            self._send_all()

    def _next(self) -> Message | None:
        with span(IDLE):
            return self._queue.get()

    def _send_all(self) -> None:
        while (message := self._next()) is not None:
            if self._deliver(message):
                self.sent += 1
            else:
                self.dropped += 1

    def _deliver(self, message: Message) -> bool:
        wait, reason = self._first_wait_s, "it was not accepted"
        for attempt in range(1 if message.topic else TRIES):
            if attempt:
                with span(IDLE):
                    self._hurry.wait(wait)
                wait *= 2
            try:
                if self._send(message):
                    return True
            except Exception as error:  # whatever a service's code raises, the run goes on
                reason = f"{type(error).__name__}: {error}"
        if self.dropped == 0:
            self._warn(f"a message could not be sent ({without_secrets(reason, self._secrets)}); training goes on")
        return False
