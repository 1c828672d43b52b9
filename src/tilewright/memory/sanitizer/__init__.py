"""The sanitizer: which accesses race, read what nobody wrote, or leave a tensor."""
