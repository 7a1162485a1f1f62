# N vectors of two numbers, the last 10,000 kept alive.
n <- as.integer(commandArgs(trailingOnly = TRUE)[1])
ring <- vector("list", 10000)
for (i in seq_len(n) - 1L) ring[[(i %% 10000L) + 1L]] <- c(i, i)
cat(length(ring), "\n")
