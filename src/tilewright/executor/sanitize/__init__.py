"""Programs as a sanitizer sees them."""
