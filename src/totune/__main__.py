"""`python -m totune` is the command line."""

from totune.cli import main

if __name__ == "__main__":
    main()
