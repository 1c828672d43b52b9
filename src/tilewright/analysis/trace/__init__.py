"""What a trace of activities says: jobs, holds, links and the critical path."""
