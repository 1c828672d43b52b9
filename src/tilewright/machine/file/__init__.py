"""Machine files: their text, their document, what is wrong with them."""
