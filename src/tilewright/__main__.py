"""``python -m tilewright`` is the command line too."""

import sys

from tilewright.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
