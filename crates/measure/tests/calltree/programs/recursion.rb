# Functions that call themselves and each other. The tests replace the texts between @ by numbers.
def work(n)
  s = n
  i = 0
  while i < n
    s = (s * 31 + i) % 65537
    i += 1
  end
  s
end

# A tree, of which each inner element is evaluated through dispatch.
def leaf(x) = work(@LEAF@)
def binary(x)
  @AGAIN@.times { evaluate(x[0]) }
  evaluate(x[0]) + evaluate(x[1])
end
def dispatch(x)
  work(4)
  x ? binary(x) : leaf(x)
end
def evaluate(x) = dispatch(x)
def make(depth) = depth > 0 ? [make(depth - 1), make(depth - 1)] : nil
evaluate(make(6))

# The outer call evaluates a set, which is dear; those of compare evaluate one element each.
def attribute(i) = work(5 + i % 3)
def compare(i) = (@DIRECT@ > 0 ? attribute(i) : step(0, i)) > 7
def choose(n)
  n.times { |i| compare(i) }
end
def step(number, i)
  return attribute(i) + work(2) if number == 0
  if number == 1
    90.times { work(20) }
    return choose(60)
  end
  step(number - 1, i) + work(9)
end
step(3, 0)

$numbers = (0...400).map { |i| i < 200 ? i : 600 - i }
def partition(low, high, pivot)
  while low <= high
    low += 1 while $numbers[low] < pivot
    high -= 1 while $numbers[high] > pivot
    if low <= high
      $numbers[low], $numbers[high] = $numbers[high], $numbers[low]
      low += 1
      high -= 1
    end
  end
  low
end
def sort(low, high)
  return if low >= high
  middle = partition(low, high, $numbers[low + (high - low) / @PIVOT@])
  sort(low, middle - 1)
  sort(middle, high)
end
sort(0, 399)

def even(n)
  work(3)
  n == 0 || odd(n - 1)
end
def odd(n)
  work(2)
  n != 0 && even(n - 1)
end
def ask = even(@DEPTH@)
9.times { ask }
