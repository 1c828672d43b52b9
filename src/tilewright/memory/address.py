"""Numbers of bytes and virtual pages: three kinds of ints that the type checker keeps apart.

Every access of a program goes through them, so they cost nothing when it runs. The checked values
of ``machine.address`` are for the borders, where an address is made or read by people.
"""

from typing import NewType

VirtualByte = NewType("VirtualByte", int)
PhysicalByte = NewType("PhysicalByte", int)
VirtualPage = NewType("VirtualPage", int)
