"""Sources of requests on which flows are judged."""
