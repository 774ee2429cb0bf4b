--[[
  Says whether an entry may begin, of a group whose dead letters hold up their keys. Where its key is held up it is set aside: the entry is
  acknowledged, and its event waits in a list until it is added to the stream again.

  KEYS[1] stream
  KEYS[2] hash of the places of its event that are held up: place → `L` and the id of a dead letter, or `E` and the id of the entry that goes first
  KEYS[3] list of the events that wait at the place, each packed: names and values of its fields, alternating
  ARGV[1] group
  ARGV[2] place
  ARGV[3] entry id

  Output: 1 when it may begin, 2 when it is the entry that goes first, 0 when it is set aside or is not pending any more.
  Guarantee: an event is pending or in the list, never in both and never in neither, however many replicas ask.
]]
-- What somebody else has put there under another type holds up nothing.
local state = redis.pcall('HGET', KEYS[2], ARGV[2])
if type(state) ~= 'string' then
  return 1
elseif state == 'E' .. ARGV[3] then
  return 2
end
local entry = redis.call('XRANGE', KEYS[1], ARGV[3], ARGV[3])[1]
if not entry then
  redis.call('XACK', KEYS[1], ARGV[1], ARGV[3])
  return 0
end
local fields = {}
for at = 1, #entry[2], 2 do
  -- Its place is its order, and its group alone needs it.
  if entry[2][at] ~= 'a' and entry[2][at] ~= 'o' then
    fields[#fields + 1] = entry[2][at]
    fields[#fields + 1] = entry[2][at + 1]
  end
end
local pushed = redis.pcall('RPUSH', KEYS[3], cmsgpack.pack(fields))
if type(pushed) ~= 'number' then
  -- A server that is full, or takes no writes: it is asked again.
  if not string.find(pushed.err, 'WRONGTYPE', 1, true) then
    return pushed
  end
  return 1
end
if redis.call('XACK', KEYS[1], ARGV[1], ARGV[3]) == 0 then
  redis.call('RPOP', KEYS[3])
end
return 0
