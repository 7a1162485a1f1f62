# Functions that call themselves and each other. The tests replace the texts between @ by numbers.
def work(n):
    s = n
    for i in range(n): s = s * 31 % 65537 + i
    return s

# A tree, of which each inner element is evaluated through dispatch.
def leaf(x): return work(@LEAF@)
def binary(x):
    for _ in range(@AGAIN@): evaluate(x[0])
    return evaluate(x[0]) + evaluate(x[1])
def dispatch(x):
    work(4)
    return binary(x) if x else leaf(x)
def evaluate(x): return dispatch(x)
def make(depth): return (make(depth - 1), make(depth - 1)) if depth else ()
evaluate(make(6))

# The outer call evaluates a set, which is dear; those of compare evaluate one element each.
def attribute(i): return work(5 + i % 3)
def compare(i): return (attribute(i) if @DIRECT@ else step(0, i)) > 7
def choose(n):
    k = 0
    for i in range(n): k += compare(i)
    return k
def step(number, i):
    if number == 0: return attribute(i) + work(2)
    if number == 1:
        for _ in range(90): work(20)
        return choose(60)
    return step(number - 1, i) + work(9)
step(3, 0)

numbers = [i if i < 200 else 600 - i for i in range(400)]
def partition(low, high, pivot):
    while low <= high:
        while numbers[low] < pivot: low += 1
        while numbers[high] > pivot: high -= 1
        if low <= high:
            numbers[low], numbers[high] = numbers[high], numbers[low]
            low += 1
            high -= 1
    return low
def sort(low, high):
    if low >= high: return
    middle = partition(low, high, numbers[low + (high - low) // @PIVOT@])
    sort(low, middle - 1)
    sort(middle, high)
sort(0, 399)

def even(n):
    work(3)
    return n == 0 or odd(n - 1)
def odd(n):
    work(2)
    return n != 0 and even(n - 1)
def ask(): return even(@DEPTH@)
for _ in range(9): ask()
