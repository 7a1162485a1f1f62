-- N tables of one slot each, the last 10,000 kept alive.
local n = tonumber(arg[1])
local ring = {}
for i = 0, n - 1 do ring[i % 10000] = {} end
print(#ring)
