"""The demo: steps, quality, page, and the sentences about them."""
