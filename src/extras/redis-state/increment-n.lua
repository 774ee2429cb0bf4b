--[[
  Adds one step to each of several counters, as many times as a counter is named.

  KEYS[i]  the counters
  ARGV[1]  the step, a safe integer
  ARGV[2]  time to live of a counter that is created, in milliseconds; 0: for ever

  Output: for each of KEYS the new number (beyond 2^52 as a text, because some clients lose its last digit); or a text when the counter
          was not changed: `not an integer`, `out of range` (of the integers that a double can represent), or the server's error.
  Guarantee: it is atomic, and a counter that exists keeps its time to live.
]]
local MAX = 9007199254740991
local HALF = 4503599627370496
local keys, pcall = KEYS, redis.pcall
local step, ttl = ARGV[1], ARGV[2]
local by = tonumber(step)
local isWindow = ttl ~= '0'
-- With a step and a sum of less than half of the range, what was there before was in it too.
local limit = (by < HALF and by > -HALF) and HALF or 0

local function shown(sum)
  return (sum >= HALF or sum <= -HALF) and string.format('%.0f', sum) or sum
end

-- 64 bits are more than a double holds: the sum and what was there before must both be safe, or the addition is taken back.
local function checked(key, sum)
  if type(sum) == 'table' then
    local isForeign = string.find(sum.err, 'not an integer', 1, true) or string.find(sum.err, 'would overflow', 1, true)
    return isForeign and 'not an integer' or sum.err
  end
  local before = sum - by
  if sum <= MAX and sum >= -MAX and before <= MAX and before >= -MAX then return shown(sum) end
  if by ~= 0 then redis.call('INCRBY', key, string.format('%.0f', -by)) end
  local held = tonumber(redis.call('GET', key))
  return (held > MAX or held < -MAX) and 'not an integer' or 'out of range'
end

local results = {}
for i = 1, #keys do
  local made = isWindow and pcall('SET', keys[i], step, 'NX', 'PX', ttl)
  if made then
    results[i] = made.err or shown(by)
  else
    local sum = pcall('INCRBY', keys[i], step)
    local isOrdinary = type(sum) == 'number' and sum < limit and sum > -limit
    results[i] = isOrdinary and sum or checked(keys[i], sum)
  end
end
return results
