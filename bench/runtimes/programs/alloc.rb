# N objects of one slot each, the last 10,000 kept alive.
n = Integer(ARGV[0])
ring = Array.new(10_000)
i = 0
while i < n
  ring[i % 10_000] = Object.new
  i += 1
end
puts n
