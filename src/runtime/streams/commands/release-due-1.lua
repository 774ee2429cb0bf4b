--[[
  Moves the delayed events that are due into their streams.

  KEYS[1] delayed events
  ARGV[1] how many at most
  ARGV[2] approximate MAXLEN of the streams, '' for none
  ARGV[3] milliseconds for which the last entry of an ordering key is kept
  ARGV[4] milliseconds after which an event is tried again whose stream cannot be written

  Output: how many were released; milliseconds until the next is due, -1 when none waits; how many could not be written, and why;
  how many members are no events: they stay, and are never due again.
  Guarantee: an event is in the sorted set or in its stream, never in both and never in neither, however many replicas do this.
]]
local BYTES_MAX = 4 * 1024 * 1024 -- so that large events do not hold up the server

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local released, bytes, failed, reason, strange = 0, 0, 0, '', 0

local function add(event)
  local command = { 'XADD', event[2] }
  if ARGV[2] ~= '' then
    command[3], command[4], command[5] = 'MAXLEN', '~', ARGV[2]
  end
  command[#command + 1] = '*'
  for index = 4, #event do
    command[#command + 1] = event[index]
  end
  local previous = event[3] ~= '' and redis.pcall('GET', event[3])
  if type(previous) == 'table' then
    return previous
  elseif previous then
    command[#command + 1] = 'a'
    command[#command + 1] = previous
  end
  local id = redis.pcall(unpack(command))
  if type(id) == 'string' and event[3] ~= '' then
    redis.call('SET', event[3], id, 'PX', ARGV[3])
  end
  return id
end

local function isEvent(member)
  local isPacked, event = pcall(cmsgpack.unpack, member)
  if not isPacked or type(event) ~= 'table' or #event < 5 or #event % 2 == 0 then
    return false
  end
  for _, part in ipairs(event) do
    if type(part) ~= 'string' then
      return false
    end
  end
  return event
end

while released + failed + strange < tonumber(ARGV[1]) and bytes < BYTES_MAX do
  local member = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, 1)[1]
  if not member then
    break
  end
  local event = isEvent(member)
  if not event then
    redis.call('ZADD', KEYS[1], '+inf', member)
    strange = strange + 1
  else
    local id = add(event)
    if type(id) == 'string' then
      redis.call('ZREM', KEYS[1], member)
      released, bytes = released + 1, bytes + #member
    elseif id.err:find('WRONGTYPE') then
      redis.call('ZADD', KEYS[1], now + ARGV[4], member)
      failed, reason = failed + 1, event[2]
    else
      return id -- nothing can be written at all
    end
  end
end

local upcoming = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '(+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
return { released, upcoming and math.max(0, upcoming - now) or -1, failed, reason, strange }
