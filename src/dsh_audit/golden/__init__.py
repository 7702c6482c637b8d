"""Golden cases: what a session's requests must look like, as structure and digests, and how a new run differs."""
