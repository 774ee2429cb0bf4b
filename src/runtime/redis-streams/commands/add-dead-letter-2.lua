--[[
  Stores a dead letter and acknowledges its entry in the same step.

  KEYS[1] stream of the dead letters
  KEYS[2] stream of the entry; any when there is none
  ARGV[1] maximum number of dead letters
  ARGV[2] maximum bytes of dead letters; the new one is always kept
  ARGV[3] group
  ARGV[4] id of the entry, '' for none: the dead letter is stored and nothing is acknowledged
  ARGV[5…] fields and values

  Each dead letter has in `t` the bytes of all dead letters before it, so that the first and the last give the size of the stream. A dead
  letter deleted between them counts until the ones before it are gone.

  Output: entry id of the dead letter, '' when the entry was acknowledged before; number of old dead letters dropped.
  Guarantee: an entry becomes one dead letter, also when this is called again because its answer was lost. If the group is gone
  (a wiped server) the dead letter is stored all the same.
]]
if ARGV[4] ~= '' then
  local pending = redis.pcall('XPENDING', KEYS[2], ARGV[3], ARGV[4], ARGV[4], 1)
  if not pending.err and #pending == 0 then
    return { '', 0 }
  end
end
local function sizes(fields)
  local before, own = 0, 0
  for at = 1, #fields, 2 do
    if fields[at] == 't' then
      before = tonumber(fields[at + 1]) or 0
    else
      own = own + #fields[at] + #fields[at + 1]
    end
  end
  return before, own
end
local start = 0
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
if last then
  local before, own = sizes(last[2])
  start = before + own
end
local stop = start
for at = 5, #ARGV do
  stop = stop + #ARGV[at]
end
local id = redis.call('XADD', KEYS[1], '*', 't', string.format('%.0f', start), unpack(ARGV, 5))
if ARGV[4] ~= '' then
  redis.call('XACK', KEYS[2], ARGV[3], ARGV[4])
end
local max, maxBytes, dropped = tonumber(ARGV[1]), tonumber(ARGV[2]), 0
local left = redis.call('XLEN', KEYS[1])
-- The first dead letter is read only where the limit may be exceeded: it may have a MiB.
while left > max or stop > maxBytes do
  local first = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
  if first[1] == id or (left <= max and stop - sizes(first[2]) <= maxBytes) then
    break
  end
  redis.call('XDEL', KEYS[1], first[1])
  left = left - 1
  dropped = dropped + 1
end
return { id, dropped }
