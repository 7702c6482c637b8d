"""``python -m dsh_audit``."""

from dsh_audit.cli.main import main

if __name__ == "__main__":
    main()
