--[[
  Keeps an event until its time has come.

  KEYS[1] delayed events
  ARGV[1] delay, milliseconds
  ARGV[2] id of the event, first in the member: what is due in the same millisecond is released in the order of the ids
  ARGV[3] stream of the event
  ARGV[4] key of the last entry with its ordering key, '' for none
  ARGV[5…] fields and values

  Output: 1 when it is kept now, 0 when it was kept already.
  Guarantee: the same publication once more changes nothing, nor does it delay the event again.
]]
local time = redis.call('TIME')
local due = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[1]
local member = { unpack(ARGV, 2) }
return redis.call('ZADD', KEYS[1], 'NX', string.format('%.0f', due), cmsgpack.pack(member))
