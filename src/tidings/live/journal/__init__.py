"""A journal of durable messages: frames that are only appended, and notice of what is missing."""
