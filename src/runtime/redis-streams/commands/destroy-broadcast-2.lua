--[[
  Destroys the group of a thread whose replica is gone.

  KEYS[1] stream
  KEYS[2] key of the replica
  ARGV[1] group

  Output: 1 when it was destroyed.
  Guarantee: never while the replica's key exists.
]]
if redis.call('EXISTS', KEYS[2]) == 1 or redis.call('EXISTS', KEYS[1]) == 0 then
  return 0
end
return redis.call('XGROUP', 'DESTROY', KEYS[1], ARGV[1])
