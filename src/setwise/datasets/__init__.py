"""Files of the field, read into one `Dataset`."""
