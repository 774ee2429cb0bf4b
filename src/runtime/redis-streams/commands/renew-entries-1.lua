--[[
  Sets the idle time of pending entries: 0 keeps them from others, a long one gives them to the next replica that claims.

  KEYS[1] stream
  ARGV[1] group
  ARGV[2] consumer with these entries
  ARGV[3] idle time, milliseconds
  ARGV[4…] entry ids

  Output: the ids of the changed entries.
  Guarantee: acknowledged entries, and entries claimed by another consumer, are left alone. Delivery counts do not change, except for a
  released entry: its count starts again, since it has ended no process.
]]
local set = {}
for index = 4, #ARGV do
  local id = ARGV[index]
  if #redis.call('XPENDING', KEYS[1], ARGV[1], id, id, 1, ARGV[2]) > 0 then
    local claim = { 'XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, id, 'IDLE', ARGV[3], 'JUSTID' }
    if tonumber(ARGV[3]) > 0 then
      claim[#claim + 1] = 'RETRYCOUNT'
      claim[#claim + 1] = 0
    end
    set[#set + 1] = redis.call(unpack(claim))[1]
  end
end
return set
