# Hashes words in Python. planted.py replaces the text between @.
import sys


def @HASH@(start, word):
    for _ in range(@ROUNDS@):
        start = (start * 31 + word) % 16777619
    return start


def parse(word):
    for _ in range(@TIMES@):
        word = @HASH@(word, word)
        @EXTRA@
    return word


total = 0
for number in range(int(sys.argv[1]) if len(sys.argv) > 1 else 2000):
    total ^= parse(number)
print(total == 1)
