--[[
  Removes a consumer whose replica is gone.

  KEYS[1] stream
  KEYS[2] key of the replica
  ARGV[1] group
  ARGV[2] consumer

  Output: 1 when it was removed.
  Guarantee: never while the replica's key exists, and never a consumer with pending entries: they would be lost with it.
]]
if redis.call('EXISTS', KEYS[2]) == 1 then
  return 0
end
local consumers = redis.pcall('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])
for _, reply in ipairs(consumers.err and {} or consumers) do
  local consumer = {}
  for at = 1, #reply, 2 do
    consumer[reply[at]] = reply[at + 1]
  end
  if consumer.name == ARGV[2] and consumer.pending == 0 then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
    return 1
  end
end
return 0
