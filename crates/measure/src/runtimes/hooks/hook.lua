-- Counts the collector's cycles with a finaliser that arms itself again. Nothing here may make a program fail.
pcall(function()
  local folder = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$")
  local hook_key, cycles, over = {}, 0, false
  local function arm()
    setmetatable({}, { __gc = function() if not over then cycles = cycles + 1; arm() end end })
  end
  -- Finalisers run in the reverse order of their making as the state closes: this one, the oldest, runs last.
  debug.getregistry()[hook_key] = setmetatable({}, { __gc = function()
    over = true
    local name = folder .. "/lua-" .. os.time() .. "-" .. tostring({}):gsub("%W", "") .. ".txt"
    local stat = io.open("/proc/self/stat")
    local pid = stat and stat:read("n") or 0
    if stat then stat:close() end
    local file = io.open(name, "w")
    if file then
      file:write(string.format("pid=%d\ncycles=%d\n", pid, cycles))
      file:close()
    end
  end })
  arm()
end)
