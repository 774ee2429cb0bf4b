--[[
  Keeps an event until it is due.

  KEYS[1] delayed events
  ARGV[1] delay, milliseconds
  ARGV[2] id of the event, first in the member: events that are due in the same millisecond are released in the order of their ids
  ARGV[3] stream of the event
  ARGV[4] key of the last entry with its ordering key, '' for none
  ARGV[5…] fields and values

  Output: 1 when it is kept now, 0 when it was kept already.
  Guarantee: a repeated call with the same publication changes nothing and does not delay the event again.
]]
local time = redis.call('TIME')
local due = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[1]
local member = { unpack(ARGV, 2) }
return redis.call('ZADD', KEYS[1], 'NX', string.format('%.0f', due), cmsgpack.pack(member))
