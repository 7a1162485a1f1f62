# Hashes words in Ruby. planted.py replaces the text between @.

def @HASH@(start, word)
  @ROUNDS@.times { start = (start * 31 + word) % 16777619 }
  start
end

def parse(word)
  @TIMES@.times do
    word = @HASH@(word, word)
    @EXTRA@
  end
  word
end

total = 0
(ARGV[0] || 2000).to_i.times { |number| total ^= parse(number) }
puts total == 1
