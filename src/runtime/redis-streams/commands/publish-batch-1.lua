--[[
  Adds events to a stream, and tells those who listen on the channel of its name.

  KEYS[1] stream
  ARGV    envelope and payload of each event, alternating

  Output: number (from 1) and error of each event not added, alternating.
  Guarantee: the events are added in their order; a failed one does not stop the others.
]]
local failed = {}
for n = 1, #ARGV, 2 do
  local added = redis.pcall('XADD', KEYS[1], '*', 'e', ARGV[n], 'p', ARGV[n + 1])
  if type(added) == 'table' and added.err then
    failed[#failed + 1] = (n + 1) / 2
    failed[#failed + 1] = added.err
  end
end
redis.pcall('PUBLISH', KEYS[1], '')
return failed
