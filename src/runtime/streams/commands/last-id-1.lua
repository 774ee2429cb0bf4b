--[[
  The id of the newest entry that a stream has ever had.

  KEYS[1] stream

  Output: the entry id, 0-0 of a stream that does not exist.
  Guarantee: all that is added later has a greater id. In a script because XREVRANGE would send the entry along.
]]
local info = redis.pcall('XINFO', 'STREAM', KEYS[1])
if info.err then return '0-0' end
for n = 1, #info, 2 do
  if info[n] == 'last-generated-id' then return info[n + 1] end
end
return '0-0'
