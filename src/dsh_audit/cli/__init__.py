"""The command line: the only place that reads arguments, prints, exits and knows paths."""
