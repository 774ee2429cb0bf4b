--[[
  Moves due events of an earlier checkout into their streams.

  KEYS[1] sorted set: packed id, stream and last key of the event, and the fields of its entry → when it is due
  ARGV[1] maximum number
  ARGV[2] pause before a member that cannot be moved is tried again, milliseconds

  Output: number of moved events.
  Guarantee: an event is in the sorted set or in its stream, never in both and never in neither, whatever number of replicas do this.
]]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local moved = 0
for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])) do
  local isPacked, event = pcall(cmsgpack.unpack, member)
  local isEvent = isPacked and type(event) == 'table' and #event > 4
  local id = isEvent and redis.pcall('XADD', event[2], '*', unpack(event, 4))
  if type(id) == 'string' then
    redis.call('ZREM', KEYS[1], member)
    moved = moved + 1
  else
    redis.call('ZADD', KEYS[1], string.format('%.0f', now + ARGV[2]), member)
  end
end
return moved
