"""Builders that keep a test to what it is about, and real brokers wired together without I/O."""

from collections import Counter
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Any, TypeVar

from tidings.broker.broker import Broker
from tidings.broker.effects import Deliver, Effect, Record, Send
from tidings.broker.frames import Ack, Data, Frame, Interests, Links, Pull
from tidings.broker.settings import Settings
from tidings.core.contract import (
    BEST_EFFORT,
    Contract,
    Destination,
    Group,
    Subscription,
    Wish,
    subscription_id,
)
from tidings.core.links.estimates import LinkEstimate
from tidings.core.message import Envelope, Message
from tidings.core.parcel import Parcel, expiry
from tidings.core.trace import Row

DELAY_S = 0.010  # one way, over any link, unless a test says otherwise
START = 1.0  # when `a_broker` is settled and a test begins

_ids = count(1_000_000)
R = TypeVar("R", bound=Row)


def a_message(
    topic: str = "t", payload: bytes = b"", id: int | None = None, **contract: Any
) -> Message:
    """A message; `deadline_s`, `late`, `price`, `strategy` and so on make its contract."""
    return Message(next(_ids) if id is None else id, topic, payload, Contract(**contract))


def a_subscription(
    broker: str = "b2", client: str = "c", topic: str = "t", where: str = "", **contract: Any
) -> Subscription:
    wish_id = subscription_id(broker, client, topic)
    return Subscription(wish_id, broker, topic, where, Contract(**contract))


def a_destination(
    broker: str = "b2", *groups: tuple[float, int], expires_s: float = inf
) -> Destination:
    """A broker that is owed a message by (deadline, count) groups of subscriptions."""
    return Destination(broker, expires_s, tuple(Group(d, n, float(n)) for d, n in groups))


def a_parcel(
    *destinations: Destination | str,
    path: tuple[str, ...] = ("b1",),
    born_at: float = 0.0,
    message: Message | None = None,
) -> Parcel:
    owed = tuple(d if isinstance(d, Destination) else a_destination(d) for d in destinations)
    told = message or a_message()
    return Parcel(told, born_at, expiry(born_at, owed), owed, path, "d-tree", 100)


def a_data(
    transmission: int,
    message: Message,
    *destinations: Destination | str,
    path: tuple[str, ...] = ("b1",),
    age_s: float = 0.0,
    strategy: str = "d-tree",
) -> Data:
    """A data frame as a neighbour would send it."""
    owed = tuple(d if isinstance(d, Destination) else a_destination(d) for d in destinations)
    return Data(transmission, Envelope(message, age_s, owed, path, strategy))


def some_interests(
    *asked: Subscription, base: int = 0, version: int = 1, incarnation: int = 1, **fields: Any
) -> Interests:
    """An update of the interests at the broker of the first subscription (or at `origin`)."""
    origin = fields.get("origin") or asked[0].broker
    transmission = fields.get("transmission", next(_ids))
    return Interests(transmission, origin, incarnation, base, version, wishes_of(*asked))


def wishes_of(*subscriptions: Subscription) -> tuple[Wish, ...]:
    """What these are to other brokers."""
    numbers = Counter((wish.topic, wish.where, wish.contract) for wish in subscriptions)
    return tuple(Wish(*asked, number) for asked, number in numbers.items())


def pinned(**settings: Any) -> Settings:
    return Settings(**{"estimates": "pinned", **settings}).checked("test")


def a_broker(
    name: str = "b1",
    neighbours: Iterable[str] = ("b2",),
    wishes: Iterable[Subscription] = (),
    room_bytes: float = inf,
    **settings: Any,
) -> Broker:
    """A settled broker at `START`: links up and ready, all it said acknowledged, and interests at
    its neighbours known."""
    known = {neighbour: LinkEstimate(DELAY_S) for neighbour in neighbours}
    broker = Broker(name, pinned(**settings), known)
    said: list[Effect] = []
    for neighbour in known:
        said += broker.link_up(neighbour, 0.0)
        said += broker.link_ready(neighbour, room_bytes, 0.0)
    said += broker.tick(0.010)
    by_home: dict[str, list[Subscription]] = {}
    for wish in wishes:
        by_home.setdefault(wish.broker, []).append(wish)
    for home, added in by_home.items():
        heard_from = home if home in known else next(iter(known))
        said += broker.receive(heard_from, some_interests(*added, origin=home), 0.010)
    acknowledge(broker, said, 0.020)
    return broker


def acknowledge(broker: Broker, effects: Iterable[Effect], now: float) -> list[Effect]:
    """The neighbours acknowledge all that the broker said."""
    answers: list[Effect] = []
    for neighbour, frame in sends(effects, (Data, Interests, Links, Pull)):
        answers += broker.receive(neighbour, Ack((frame.transmission,)), now)
    return answers


# ---- looking at effects


def sends(effects: Iterable[Effect], kind: Any = Data) -> list[tuple[str, Any]]:
    """The frames of a kind among effects, each with the neighbour it goes to."""
    found = [e for e in effects if isinstance(e, Send)]
    return [(e.neighbour, e.frame) for e in found if isinstance(e.frame, kind)]


def rows(effects: Iterable[Effect], kind: type[R]) -> list[R]:
    return [e.row for e in effects if isinstance(e, Record) and isinstance(e.row, kind)]


def deliveries(effects: Iterable[Effect]) -> list[Deliver]:
    return [e for e in effects if isinstance(e, Deliver)]


# ---- several brokers


Loses = Callable[[str, str, Frame], bool]  # sender, receiver, frame


def nothing(sender: str, receiver: str, frame: Frame) -> bool:
    """The loss of a perfect network."""
    return False


class Net:
    """Brokers that talk in virtual time, over links with a delay and a scripted loss."""

    def __init__(self, delay_s: float = DELAY_S) -> None:
        self.now = 0.0
        self.brokers: dict[str, Broker] = {}
        self.delay_s = delay_s
        self.known: LinkEstimate | None = None  # of links to neighbours that were never met
        self.loses: Loses = nothing
        self.said: list[tuple[float, str, str, Frame]] = []
        self.rows: list[Row] = []
        self.wishes: dict[str, Subscription] = {}  # the last of each id
        self.delivered: list[tuple[str, int]] = []  # subscription, message
        self._events: list[tuple[float, int, str, str, Frame]] = []
        self._serial = count()

    def add(self, broker: Broker) -> None:
        self.brokers[broker.name] = broker

    def connect(self, a: str, b: str) -> None:
        """Both ends of a link notice that it works."""
        for one, other in ((a, b), (b, a)):
            self.carry_out(one, self.brokers[one].link_up(other, self.now, self.known))
            self.tell(one, "link_ready", other, inf)

    def disconnect(self, a: str, b: str) -> None:
        for one, other in ((a, b), (b, a)):
            self.tell(one, "link_down", other)

    def tell(self, name: str, input: str, *arguments: Any) -> None:
        """Call an input of one broker now, and carry out what it wants."""
        self.carry_out(name, getattr(self.brokers[name], input)(*arguments, self.now))

    def carry_out(self, name: str, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Send():
                    self._send(name, effect)
                case Record():
                    self.rows.append(effect.row)
                case Deliver():
                    self.delivered += [(s, effect.message.id) for s in effect.subscriptions]

    def publish(self, name: str, topic: str = "t", **contract: Any) -> int:
        message = a_message(topic, id=self.brokers[name].message_ids.take(), **contract)
        self.tell(name, "publish", message)
        return message.id

    def subscribe(self, name: str, client: str = "c", topic: str = "t", **contract: Any) -> str:
        wish = a_subscription(name, client, topic, **contract)
        self.wishes[wish.id] = wish
        self.tell(name, "subscribe", wish)
        return wish.id

    def run(self, seconds: float) -> None:
        """Let time pass: frames arrive before anybody's patience ends."""
        end_at = self.now + seconds
        while True:
            waking = [(b.wake_at(), n) for n, b in self.brokers.items()]
            wake_at, sleeper = min(waking, default=(inf, ""))
            arrives_at = self._events[0][0] if self._events else inf
            if min(wake_at, arrives_at) > end_at:
                break
            if arrives_at <= wake_at:
                self.now, _, sender, receiver, frame = heappop(self._events)
                if receiver in self.brokers:
                    self.tell(receiver, "receive", sender, frame)
            else:
                self.now = max(self.now, wake_at)
                self.tell(sleeper, "tick")
        self.now = end_at

    def frames(self, kind: Any, sender: str = "", receiver: str = "") -> list[Any]:
        """The frames of a kind that were put on links, lost ones too."""
        return [
            frame
            for _, a, b, frame in self.said
            if isinstance(frame, kind) and sender in ("", a) and receiver in ("", b)
        ]

    def rows_of(self, kind: type[R]) -> list[R]:
        return [row for row in self.rows if isinstance(row, kind)]

    def takers(self, name: str, topic: str = "t") -> dict[str, dict[float, int]]:
        """For whom, as one broker knows, a message would be that it publishes now: by broker and
        deadline, how many want it."""
        return takers(self.brokers[name], topic)

    def of(self, *subscriptions: str) -> dict[str, dict[float, int]]:
        """The takers that are just these."""
        found: dict[str, dict[float, int]] = {}
        for wish in (self.wishes[subscription] for subscription in subscriptions):
            groups = found.setdefault(wish.broker, {})
            groups[wish.contract.deadline_s] = groups.get(wish.contract.deadline_s, 0) + 1
        return found

    def _send(self, sender: str, send: Send) -> None:
        self.said.append((self.now, sender, send.neighbour, send.frame))
        if not self.loses(sender, send.neighbour, send.frame):
            event = (
                self.now + self.delay_s,
                next(self._serial),
                sender,
                send.neighbour,
                send.frame,
            )
            heappush(self._events, event)


def takers(broker: Broker, topic: str = "t") -> dict[str, dict[float, int]]:
    """How many want a message on this topic, as a broker knows, by their broker and deadline."""
    wanted = broker._interests.wanted(a_message(topic))
    here = Counter[float]()
    for contract, ids in wanted.local:
        here[contract.deadline_s] += len(ids)
    owed = wanted.destinations(BEST_EFFORT)
    found = {each.broker: {group.deadline_s: group.count for group in each.groups} for each in owed}
    return found | ({broker.name: dict(here)} if here else {})


def connected(
    *links: tuple[str, str],
    settle_s: float = 1.0,
    later: tuple[tuple[str, str], ...] = (),
    loses: Loses = nothing,
    **settings: Any,
) -> Net:
    """Brokers joined by these links, which have got to know each other; by default with pinned
    estimates. Links that are to come up `later` are left to the test."""
    net = Net()
    net.loses = loses
    ends = sorted({end for link in (*links, *later) for end in link})
    checked = pinned(**settings)
    for name in ends:
        near = [b if a == name else a for a, b in (*links, *later) if name in (a, b)]
        start = LinkEstimate(DELAY_S) if checked.estimates == "pinned" else None
        net.add(Broker(name, checked, dict.fromkeys(near, start)))
    for a, b in links:
        net.connect(a, b)
    net.run(settle_s)
    return net


LINE = (("b1", "b2"), ("b2", "b3"))
TRIANGLE = (("b1", "b2"), ("b2", "b3"), ("b1", "b3"))
