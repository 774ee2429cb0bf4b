--[[
  Resets the idle time of the pending entries of some consumers, so that nobody else claims them.

  KEYS[1] stream
  ARGV[1] group
  ARGV[2] only entries idle for at least so many milliseconds
  ARGV[3…] consumers

  Output: how many were renewed, and how many were gone: the stream was cut, and the server has dropped them.
  Guarantee: an entry that another consumer has claimed meanwhile stays there; delivery counts stay as they are.
]]
local CHUNK = 500
local renewed, cut = 0, 0
for index = 3, #ARGV do
  local from = '-'
  repeat
    local found = redis.call('XPENDING', KEYS[1], ARGV[1], 'IDLE', ARGV[2], from, '+', CHUNK, ARGV[index])
    if #found > 0 then
      local claim = { 'XCLAIM', KEYS[1], ARGV[1], ARGV[index], 0 }
      for _, entry in ipairs(found) do
        claim[#claim + 1] = entry[1]
      end
      claim[#claim + 1] = 'JUSTID'
      local claimed = #redis.call(unpack(claim))
      renewed = renewed + claimed
      cut = cut + #found - claimed
      from = '(' .. found[#found][1]
    end
  until #found < CHUNK
end
return { renewed, cut }
