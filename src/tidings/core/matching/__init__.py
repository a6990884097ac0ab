"""Which subscriptions want this message? An index over topic filters and predicates.

The filters stand in a trie (`trie`), one leaf per distinct filter. At a leaf, the predicates of its
subscriptions are cut into conjunctions of bounds and equalities (`conjunctions`), those of one
shape stand together in columns (`shapes`), and a column is either searched or compared in one
vector operation (`runs`). Naive matching costs a walk over every predicate's tree; here a message
costs a few array operations per shape, and the result is an array of keys.
"""

from tidings.core.matching.index import MatchingIndex, TopicPlan

__all__ = ["MatchingIndex", "TopicPlan"]
