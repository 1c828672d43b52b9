"""Instructions of small cases, counted by callgrind: a measure of speed that no load disturbs."""
