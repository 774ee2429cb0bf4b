--[[
  Destroys a group, or removes a consumer of it, that the server has not seen for a time.

  KEYS[1] stream
  ARGV[1] group
  ARGV[2] consumer, '' for the group
  ARGV[3] milliseconds

  Output: 1 when it was dropped.
  Guarantee: never a group with a consumer that was seen in this time, and never a consumer with pending entries: they would be lost with it.
]]
for _, reply in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  local consumer = {}
  for at = 1, #reply, 2 do
    consumer[reply[at]] = reply[at + 1]
  end
  local isSeen = consumer.idle < tonumber(ARGV[3])
  if ARGV[2] == '' and isSeen then
    return 0
  end
  if ARGV[2] == consumer.name then
    if isSeen or consumer.pending > 0 then
      return 0
    end
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
    return 1
  end
end
return ARGV[2] == '' and redis.call('XGROUP', 'DESTROY', KEYS[1], ARGV[1]) or 0
