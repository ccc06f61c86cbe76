"""Functions that are neither scalars nor aggregates: over windows, making rows, making relations, grouping."""

from __future__ import annotations

from engine.compile.functions.scalars import words

#: need OVER
WINDOW = words("cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number")

#: rows for each row. In FROM they may stand alone too, over literals
GENERATORS = words("""
    explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer stack variant_explode
    variant_explode_outer
""")

#: relations of their own
TABLES = words("range")

#: `window` gives each row the windows that it falls into: one, or several where windows slide (rows are multiplied).
#: `session_window` merges what is close: one new row can join two groups, one that goes can part them.
GROUPING = words("grouping grouping_id session_window window")
