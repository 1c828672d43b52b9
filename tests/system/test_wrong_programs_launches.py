"""Launches that go wrong, through the host: what they say, and what the context does next."""

import gc
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.kinds import ENGINES  # type: ignore[import-not-found]
