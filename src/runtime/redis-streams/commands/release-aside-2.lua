--[[
  Returns events to their stream that an older release kept behind dead letters, each for its group alone.

  KEYS[1] stream
  KEYS[2] hash: blocked groups and keys, as JSON; a list for each holds the packed fields of its waiting events
  ARGV[1] prefix of the lists
  ARGV[2] maximum number of events

  Output: 1 when there may be more.
  Guarantee: an event is in its list or in the stream, never in both and never in neither, whatever number of replicas do this.
]]
local left = tonumber(ARGV[2])
for _, place in ipairs(redis.call('HKEYS', KEYS[2])) do
  local isPlace, of = pcall(cjson.decode, place)
  local list = ARGV[1] .. place
  while isPlace and left > 0 do
    local packed = redis.pcall('LINDEX', list, 0)
    if type(packed) ~= 'string' then
      break
    end
    local fields = cmsgpack.unpack(packed)
    fields[#fields + 1] = 'o'
    fields[#fields + 1] = of[1]
    redis.call('XADD', KEYS[1], '*', unpack(fields))
    redis.call('LPOP', list)
    left = left - 1
  end
  if left == 0 then
    return 1
  end
  redis.call('HDEL', KEYS[2], place)
end
return 0
