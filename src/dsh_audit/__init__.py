"""dsh-audit: offline, read-only replay and audit of DeepSeek Harness session logs."""
