"""What draws: figures of studies, and pictures of an analysis."""
