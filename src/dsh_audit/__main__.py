"""``python -m dsh_audit``."""

from dsh_audit.cli.main import run

if __name__ == "__main__":
    run()
