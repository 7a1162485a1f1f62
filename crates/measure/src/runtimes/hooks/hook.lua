-- Counts the collector's cycles by a finaliser that registers itself again. Nothing here may make a program fail.
pcall(function()
  local folder = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$")
  local cycles, over = 0, false
  local function finalised(run)
    -- LuaJIT only finalises userdata, which `newproxy` makes without C. Lua 5.4 finalises tables and has no `newproxy`.
    if newproxy then
      local proxy = newproxy(true)
      getmetatable(proxy).__gc = run
      return proxy
    end
    return setmetatable({}, { __gc = run })
  end
  local function arm()
    finalised(function() if not over then cycles = cycles + 1; arm() end end)
  end
  -- When the state closes, finalisers run in reverse order of their creation: this one, the oldest, runs last.
  debug.getregistry()[{}] = finalised(function()
    over = true
    local runtime = jit and "luajit" or "lua"
    local name = folder .. "/" .. runtime .. "-" .. os.time() .. "-" .. tostring({}):gsub("%W", "") .. ".txt"
    local stat = io.open("/proc/self/stat")
    local pid = stat and stat:read("*n") or 0
    if stat then stat:close() end
    local file = io.open(name, "w")
    if file then
      file:write(string.format("pid=%d\ncycles=%d\n", pid, cycles))
      file:close()
    end
  end)
  arm()
end)
