--[[
  Adds events to a stream.

  KEYS[1] stream
  ARGV    envelope and payload of each event, in turn

  Output: of those that were not added, the number (from 1) and the error, in turn.
  Guarantee: they are added in their order; one that fails does not keep the others out.
]]
local failed = {}
for n = 1, #ARGV, 2 do
  local added = redis.pcall('XADD', KEYS[1], '*', 'e', ARGV[n], 'p', ARGV[n + 1])
  if type(added) == 'table' and added.err then
    failed[#failed + 1] = (n + 1) / 2
    failed[#failed + 1] = added.err
  end
end
return failed
