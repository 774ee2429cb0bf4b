--[[
  Frees a replica's name.

  KEYS[1] key of the replica
  ARGV[1] token of its holder

  Output: 1 when it was the holder's.
  Guarantee: a name taken by another process stays its own.
]]
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('DEL', KEYS[1])
