"""`python -m bedstone`: the command line."""

from bedstone.cli import main

if __name__ == "__main__":
    main()
