"""Where a compiled flow runs; the only part of attention that touches a device."""
