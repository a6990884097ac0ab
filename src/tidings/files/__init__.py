"""Files, handled with care: whole or not there at all, and errors that name the file and field."""
