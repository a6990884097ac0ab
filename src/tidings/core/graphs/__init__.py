"""Mathematics on graphs of links: paths, disjoint paths, and how reliable several are together."""
