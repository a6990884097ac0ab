"""`dcrd`: read `sending_list` (the mathematics), `sending_lists` (the exchange), then `router`."""
