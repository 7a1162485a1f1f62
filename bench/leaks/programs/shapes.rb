# Keeps arrays of ten numbers in a shape that is known: SHAPE N.
shape, count = ARGV
$kept = []
$cache = {}
300_000.times { |i| $kept << Array.new(10, i) } if shape == 'base'
1.upto(count.to_i) do |i|
  block = Array.new(10, i)
  case shape
  when 'leak', 'base' then $kept << block
  when 'fifty' then $kept << block if (i % 50).zero?
  when 'root' then $kept << block if Integer.sqrt(i)**2 == i
  when 'cache' then $cache[i % 20_000] = block
  when 'log' then $kept << Array.new(8192, i) if (i & (i - 1)).zero?
  end
end
