# N objects, the last 10,000 kept alive; each step also makes the number i, and the remainder where it is above 256.
import sys

n = int(sys.argv[1])
ring = [None] * 10000
for i in range(n):
    ring[i % 10000] = object()
print(n)
