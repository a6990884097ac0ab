"""`tidings learn`: from measurements to a model of every link."""
