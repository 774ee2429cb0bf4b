--[[
  Gives pending entries back: to the consumer that stands for nobody, whose entries the next replica that looks claims.

  KEYS[1] stream
  ARGV[1] group
  ARGV[2] consumer with these entries
  ARGV[3] consumer that stands for nobody
  ARGV[4…] entry ids

  Output: the ids of the released entries.
  Guarantee: acknowledged entries, and entries claimed by another consumer, are left alone. Delivery counts start again: a released
  entry has ended no process.
]]
local released = {}
for index = 4, #ARGV do
  local id = ARGV[index]
  if #redis.call('XPENDING', KEYS[1], ARGV[1], id, id, 1, ARGV[2]) > 0 then
    released[#released + 1] = redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[3], 0, id, 'RETRYCOUNT', 0, 'JUSTID')[1]
  end
end
return released
