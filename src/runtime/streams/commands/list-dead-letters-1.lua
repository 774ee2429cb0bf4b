--[[
  Reads a page of the dead letters, newest first, without their payloads: each may have a MiB.

  KEYS[1] stream of the dead letters
  ARGV[1] where to begin, as XREVRANGE takes it
  ARGV[2] how many

  Output: of each entry the id, and the fields and values except `p`.
]]
local entries = redis.call('XREVRANGE', KEYS[1], ARGV[1], '-', 'COUNT', ARGV[2])
for _, entry in ipairs(entries) do
  local fields = {}
  for at = 1, #entry[2], 2 do
    if entry[2][at] ~= 'p' then
      fields[#fields + 1] = entry[2][at]
      fields[#fields + 1] = entry[2][at + 1]
    end
  end
  entry[2] = fields
end
return entries
