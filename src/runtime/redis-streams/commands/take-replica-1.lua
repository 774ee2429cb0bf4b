--[[
  Takes a replica's name, or keeps it.

  KEYS[1] key of the replica
  ARGV[1] token of the new holder
  ARGV[2] time until it expires, milliseconds
  ARGV[3] token of a holder known to be dead, '' for none

  Output: empty when it was taken, else the holder's token and the milliseconds until it expires.
  Guarantee: if several processes try at once, only one gets it.
]]
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] and holder ~= ARGV[3] then
  return { holder, redis.call('PTTL', KEYS[1]) }
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {}
