"""`python -m stagescope` is the command `stagescope`."""

from stagescope.cli.entry import main

if __name__ == "__main__":
    main()
