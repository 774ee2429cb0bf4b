--[[
  Removes the entries of a stream no group needs any more, and reports entries lost to groups by a cap.

  KEYS[1] stream
  KEYS[2] hash: stream → number of its entries removed before the last call ended
  ARGV[1] maximum number of entries, '' for any number: the oldest above it are cut even when a group needs them
  ARGV[2] age below which a stream without groups keeps its entries, milliseconds

  Output: number of entries removed because no group needs them; number of entries cut; then for each group with losses:
  name, approximate number never delivered to it, number pending that cannot be delivered again.
  Guarantee: without a cap, entries pending or not yet delivered in a group stay. Each loss is reported once, to the first
  caller. A cut by others is noticed from Redis 7.0 on, as long as the group has not read past it.
]]
local LIMIT = 500000 -- one large backlog must not block the server

local function isBelow(a, b)
  local aMs, aSeq = a:match('^(%d+)-(%d+)$')
  local bMs, bSeq = b:match('^(%d+)-(%d+)$')
  aMs, bMs = tonumber(aMs), tonumber(bMs)
  return aMs < bMs or (aMs == bMs and tonumber(aSeq) < tonumber(bSeq))
end

local function after(id)
  local ms, seq = id:match('^(%d+)-(%d+)$')
  return ms .. '-' .. string.format('%.0f', tonumber(seq) + 1)
end

if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('HDEL', KEYS[2], KEYS[1])
  return { 0, 0 }
end

local groups, added, needed = {}, nil, nil
for _, reply in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  local group = {}
  for at = 1, #reply, 2 do
    group[reply[at]] = reply[at + 1]
  end
  groups[#groups + 1] = group
  if group['entries-read'] and group.lag then
    added = group['entries-read'] + group.lag
  end
  local need = after(group['last-delivered-id'])
  if group.pending > 0 then
    need = redis.call('XPENDING', KEYS[1], group.name)[2]
  end
  if not needed or isBelow(need, needed) then
    needed = need
  end
end
if not needed then
  local time = redis.call('TIME')
  needed = string.format('%.0f-0', math.max(0, time[1] * 1000 + math.floor(time[2] / 1000) - ARGV[2]))
end

local output = { 0, 0 }
local told = tonumber(redis.call('HGET', KEYS[2], KEYS[1]) or '0')

-- Missing entries not trimmed here were needed by a group, unless every group is past them.
local function tellLosses(cut)
  local removed = added and added - redis.call('XLEN', KEYS[1])
  if cut == 0 and not (removed and removed > told) then
    return
  end
  local first = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
  first = first and first[1] or '18446744073709551615-0'
  for _, group in ipairs(groups) do
    local missed, pending = 0, 0
    if isBelow(after(group['last-delivered-id']), first) then
      -- Redis 7.0 counts the entries delivered to a group, not the entries the group is past: after a loss the count is too low.
      missed = removed and group['entries-read'] and math.max(0, removed - math.max(told, group['entries-read'])) or cut
    end
    if group.pending > 0 then
      pending = #redis.call('XPENDING', KEYS[1], group.name, '-', '(' .. first, LIMIT)
    end
    if missed > 0 or pending > 0 then
      output[#output + 1] = { group.name, missed, pending }
    end
  end
  told = removed or told
end

tellLosses(0)
output[1] = redis.call('XTRIM', KEYS[1], 'MINID', '~', needed, 'LIMIT', LIMIT)
if output[1] < LIMIT / 2 then
  output[1] = output[1] + redis.call('XTRIM', KEYS[1], 'MINID', '=', needed)
end
told = told + output[1]
if ARGV[1] ~= '' and redis.call('XLEN', KEYS[1]) > tonumber(ARGV[1]) then
  output[2] = redis.call('XTRIM', KEYS[1], 'MAXLEN', '=', ARGV[1])
  tellLosses(output[2])
end
if added then
  redis.call('HSET', KEYS[2], KEYS[1], added - redis.call('XLEN', KEYS[1]))
end
return output
