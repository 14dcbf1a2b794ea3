"""Papers: what a paper is, how its runs are read, where papers are found; one package for each paper."""
