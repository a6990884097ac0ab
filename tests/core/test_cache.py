"""A bounded cache answers like a dict, forgets all when it is full, and never grows beyond."""

from hypothesis import given
from hypothesis import strategies as st

from tidings.core.cache import BoundedCache


def test_what_is_kept_is_found_until_the_cache_is_full() -> None:
    cache = BoundedCache[str, int](2)
    assert cache.keep("a", 1) == 1
    assert cache.keep("b", 2) == 2
    assert cache.keep("b", 3) == 3  # known already: no reason to begin again
    assert dict(cache) == {"a": 1, "b": 3}
    cache.keep("c", 4)
    assert dict(cache) == {"c": 4}
    assert cache.get("a") is None


@given(st.integers(1, 5), st.lists(st.tuples(st.integers(0, 9), st.integers())))
def test_a_cache_never_grows_beyond_its_bound_nor_tells_anything_old(
    most: int, given: list[tuple[int, int]]
) -> None:
    cache, newest = BoundedCache[int, int](most), dict[int, int]()
    for key, value in given:
        cache.keep(key, value)
        newest[key] = value
        assert cache[key] == value
        assert len(cache) <= most
        assert cache.items() <= newest.items()


@given(st.integers(1, 50), st.lists(st.tuples(st.integers(0, 9), st.integers(1, 30)), max_size=50))
def test_the_sizes_of_what_is_kept_never_sum_to_more_than_the_bound(
    most: int, given: list[tuple[int, int]]
) -> None:
    cache, sizes = BoundedCache[int, int](most), dict[int, int]()
    for key, size in given:
        if key not in cache:
            sizes[key] = size
        assert cache.keep(key, size, size) == size
        assert sum(sizes[kept] for kept in cache) <= most


def test_what_would_fill_much_of_the_cache_alone_is_not_kept_and_drives_out_nothing() -> None:
    cache = BoundedCache[str, int](1_000)
    cache.keep("small", 1, 10)
    assert cache.keep("large", 2, 900) == 2
    assert dict(cache) == {"small": 1}


def test_what_is_forgotten_makes_room() -> None:
    cache = BoundedCache[str, int](2)
    cache.keep("a", 1)
    cache.keep("b", 2)
    cache.forget("a")
    cache.keep("c", 3)
    assert dict(cache) == {"b": 2, "c": 3}
