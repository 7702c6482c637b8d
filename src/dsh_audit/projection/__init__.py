"""Pure folds from events to what a request is made of: surface, messages, request header, repair."""
