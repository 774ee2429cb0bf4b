--[[
  Creates a consumer group, and the stream when there is none.

  KEYS[1] stream
  ARGV[1] group
  ARGV[2] '$': it gets later entries only; '0': all entries of the stream as well

  Output: 1 when it is new, 0 when it was there.
  Guarantee: an existing group keeps its position. From Redis 7.0 on a new group knows how many entries lie before it; otherwise
  the server could not tell later how many it has missed.
]]
local create = { 'XGROUP', 'CREATE', KEYS[1], ARGV[1], ARGV[2], 'MKSTREAM' }
if redis.call('EXISTS', KEYS[1]) == 1 then
  for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
    if group[2] == ARGV[1] then
      return 0
    end
  end
  local stream = redis.call('XINFO', 'STREAM', KEYS[1])
  for at = 1, #stream, 2 do
    if stream[at] == 'entries-added' then
      create[7] = 'ENTRIESREAD'
      create[8] = stream[at + 1] - (ARGV[2] == '0' and redis.call('XLEN', KEYS[1]) or 0)
    end
  end
end
redis.call(unpack(create))
return 1
