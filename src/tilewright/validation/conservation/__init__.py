"""Conservation rules of recorded runs, and defects that break them."""
