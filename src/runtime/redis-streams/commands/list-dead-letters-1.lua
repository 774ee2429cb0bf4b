--[[
  Reads a page of the dead letters, newest first, without their payloads: each may have a MiB.

  KEYS[1] stream of the dead letters
  ARGV[1] start, in the form of XREVRANGE
  ARGV[2] maximum number
  ARGV[3] bytes after which the page ends

  Output: of each entry the id, and the fields and values except `p`. Empty when there are no more.
]]
local page, bytes = {}, 0
for _, entry in ipairs(redis.call('XREVRANGE', KEYS[1], ARGV[1], '-', 'COUNT', ARGV[2])) do
  local fields = {}
  for at = 1, #entry[2], 2 do
    if entry[2][at] ~= 'p' then
      fields[#fields + 1] = entry[2][at]
      fields[#fields + 1] = entry[2][at + 1]
      bytes = bytes + #entry[2][at + 1]
    end
  end
  page[#page + 1] = { entry[1], fields }
  if bytes > tonumber(ARGV[3]) then
    break
  end
end
return page
