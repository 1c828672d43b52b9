"""``python -m tilewright.cli`` is the command line too."""

import sys

from tilewright.cli.main import main

sys.exit(main())
