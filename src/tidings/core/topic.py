"""Which topic names and filters are legal, and which filter matches which topic?

MQTT 5 section 4.7 (3.1.1 says the same). A topic is a path of levels separated by `/`, where empty
levels count. In a filter `+` stands for exactly one level and `#`, only as the last level, for any
number of them including none, so `sport/#` matches `sport`. Topics that begin with `$` belong to
the server: a filter that begins with a wildcard does not match them.
"""

from __future__ import annotations

from tidings.core.errors import FilterError, TopicError

MAX_TOPIC_BYTES = 65_535  # MQTT writes a string's length in two bytes

_Fault = type[TopicError] | type[FilterError]


def check_topic(topic: str) -> None:
    """Raises TopicError, pointing at the character, unless one can publish to this topic."""
    _check_text(topic, TopicError)
    for wildcard in "+#":
        if (position := topic.find(wildcard)) >= 0:
            problem = f"a topic to publish to has no wildcards, but here is {wildcard!r}"
            raise TopicError(topic, position, problem)


def check_filter(filter: str) -> None:
    """Raises FilterError, pointing at the character, unless one can subscribe to this filter."""
    _check_text(filter, FilterError)
    if "+" not in filter and "#" not in filter:
        return
    start = 0
    for level in filter.split("/"):
        _check_level(filter, level, start)
        start += len(level) + 1


def matches(filter: str, topic: str) -> bool:
    """Whether a legal filter matches a legal topic."""
    if topic.startswith("$") and filter.startswith(("+", "#")):
        return False
    wanted, levels = filter.split("/"), topic.split("/")
    if wanted[-1] == "#":
        del wanted[-1]
        levels_match = len(levels) >= len(wanted)
    else:
        levels_match = len(levels) == len(wanted)
    return levels_match and all(
        pattern in ("+", level) for pattern, level in zip(wanted, levels, strict=False)
    )


def _check_level(filter: str, level: str, start: int) -> None:
    for wildcard in "+#":
        if wildcard in level and level != wildcard:
            problem = f"{wildcard!r} must be alone in its level, as in 'a/{wildcard}'"
            raise FilterError(filter, start + level.index(wildcard), problem)
    if level == "#" and start + 1 < len(filter):
        raise FilterError(filter, start, "'#' must be the last level, as in 'a/b/#'")


def _check_text(text: str, fault: _Fault) -> None:
    """What MQTT asks of every string, and that there is one."""
    if not text:
        raise fault(text, 0, "it is empty, but at least one character is needed")
    if (position := text.find("\0")) >= 0:
        raise fault(text, position, "the NUL character is not allowed")
    if text.isascii():
        if len(text) > MAX_TOPIC_BYTES:
            raise fault(text, MAX_TOPIC_BYTES, _too_long(len(text)))
        return
    try:
        encoded = text.encode()
    except UnicodeEncodeError as error:
        problem = "half of a surrogate pair is not a character"
        raise fault(text, error.start, problem) from None
    if len(encoded) > MAX_TOPIC_BYTES:
        fitting = encoded[:MAX_TOPIC_BYTES].decode(errors="ignore")
        raise fault(text, len(fitting), _too_long(len(encoded)))


def _too_long(size_bytes: int) -> str:
    return f"it takes {size_bytes} bytes in UTF-8, but at most {MAX_TOPIC_BYTES} are allowed"
