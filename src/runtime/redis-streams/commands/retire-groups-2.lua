--[[
  Destroys the groups of a stream without a subscriber for a long time, and names the groups without a living subscriber.
  Groups of single threads (with an `@`) are left alone: they end with their replica.

  KEYS[1] stream
  KEYS[2] hash: stream, blank, group → time of its last mark by a replica; stream → time of the last check
  ARGV[1] milliseconds without a mark after which a group is destroyed
  ARGV[2] milliseconds without a mark after which its subscriber counts as gone
  ARGV[3] milliseconds since the last check that prove that no replica ran: this time does not count

  Output: for each such group: name, 1 when it was destroyed, milliseconds since it was last seen, number of its waiting entries.
  Guarantee: a group marked meanwhile stays. A group never marked before counts as marked now.
]]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local looked = tonumber(redis.call('HGET', KEYS[2], KEYS[1]) or '') or now
redis.call('HSET', KEYS[2], KEYS[1], string.format('%.0f', now))
local absent = now - looked > tonumber(ARGV[3]) and now - looked or 0
local output = {}
for _, reply in ipairs(redis.call('EXISTS', KEYS[1]) == 1 and redis.call('XINFO', 'GROUPS', KEYS[1]) or {}) do
  local group = {}
  for at = 1, #reply, 2 do
    group[reply[at]] = reply[at + 1]
  end
  local field = KEYS[1] .. ' ' .. group.name
  local seen = tonumber(redis.call('HGET', KEYS[2], field) or '')
  if group.name:find('@', 1, true) then
    seen = now
  elseif not seen or absent > 0 then
    seen = math.min(now, (seen or now) + absent)
    redis.call('HSET', KEYS[2], field, string.format('%.0f', seen))
  end
  local idle = now - seen
  if idle > tonumber(ARGV[2]) then
    local isOver = idle > tonumber(ARGV[1])
    if isOver then
      redis.call('XGROUP', 'DESTROY', KEYS[1], group.name)
      redis.call('HDEL', KEYS[2], field)
    end
    local waiting = (group.lag or redis.call('XLEN', KEYS[1])) + group.pending
    output[#output + 1] = { group.name, isOver and 1 or 0, idle, waiting }
  end
end
return output
