--[[
  Adds one step to each of several counters, as many times as a counter is named.

  KEYS[i]  the counters
  ARGV[1]  the step, a safe integer
  ARGV[2]  time to live of a counter that is created, in milliseconds; 0: for ever

  Output: for each of KEYS the new number (beyond 2^52 as a text: some clients lose its last digit), or a text when it was left as it
          is: `not an integer`, `out of range` (of the integers that a double holds exactly), or the server's error.
  Guarantee: nothing runs in between, and a counter that exists keeps its time to live.
]]
local MAX = 9007199254740991
local EXACT = 4503599627370496
local step, ttl = ARGV[1], ARGV[2]
local by = tonumber(step)
local results = {}

local function shown(sum)
  return (sum > EXACT or sum < -EXACT) and string.format('%.0f', sum) or sum
end

-- 64 bits are more than a double holds: the sum and what was there before must both be safe, or the addition is taken back.
local function add(key)
  local sum = redis.pcall('INCRBY', key, step)
  if type(sum) == 'table' then
    local isForeign = string.find(sum.err, 'not an integer', 1, true) or string.find(sum.err, 'would overflow', 1, true)
    return isForeign and 'not an integer' or sum.err
  end
  local before = sum - by
  if sum <= MAX and sum >= -MAX and before <= MAX and before >= -MAX then return shown(sum) end
  redis.call('INCRBY', key, string.format('%.0f', -by))
  return (before > MAX or before < -MAX) and 'not an integer' or 'out of range'
end

for i, key in ipairs(KEYS) do
  local made = ttl ~= '0' and redis.pcall('SET', key, step, 'NX', 'PX', ttl)
  if not made then
    results[i] = add(key)
  elseif made.err then
    results[i] = made.err
  else
    results[i] = shown(by)
  end
end
return results
