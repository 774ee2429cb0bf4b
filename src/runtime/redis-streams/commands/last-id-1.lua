--[[
  Returns the id of the newest entry a stream has ever had.

  KEYS[1] stream

  Output: the entry id, 0-0 when there is no such stream.
  Guarantee: entries added later have greater ids. It is a script because XREVRANGE would also send the entry.
]]
local info = redis.pcall('XINFO', 'STREAM', KEYS[1])
if info.err then return '0-0' end
for n = 1, #info, 2 do
  if info[n] == 'last-generated-id' then return info[n + 1] end
end
return '0-0'
