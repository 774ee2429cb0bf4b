--[[
  Adds an event that has an ordering key. It names the one before it with the same key, which a group must have finished
  before it begins this one.

  KEYS[1] stream of the event
  KEYS[2] last entry with this key
  ARGV[1] approximate MAXLEN, '' for none
  ARGV[2] milliseconds for which KEYS[2] is kept
  ARGV[3…] fields and values

  Output: the id of the new entry.
  Guarantee: two publications with one key are chained in the order of their ids, whichever replicas they come from.
]]
-- What somebody else has put there under another type orders nothing, and is replaced.
local previous = redis.pcall('GET', KEYS[2])
if type(previous) ~= 'string' then
  previous = nil
end
local add = { 'XADD', KEYS[1] }
if ARGV[1] ~= '' then
  add[3], add[4], add[5] = 'MAXLEN', '~', ARGV[1]
end
add[#add + 1] = '*'
for index = 3, #ARGV do
  add[#add + 1] = ARGV[index]
end
if previous then
  add[#add + 1] = 'a'
  add[#add + 1] = previous
end
local id = redis.call(unpack(add))
redis.call('SET', KEYS[2], id, 'PX', ARGV[2])
return id
