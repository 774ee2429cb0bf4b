--[[
  Puts a dead letter back into the stream of its event, for its group alone.

  KEYS[1] stream of the dead letters
  KEYS[2] stream of its event
  ARGV[1] entry id of the dead letter
  ARGV[2] its group

  Output: 1 when it was moved, 0 when the dead letter or the group is gone.
  Guarantee: the dead letter is in one of the two streams, and only once in the stream of its event, even if two replicas replay it at a time.
]]
local entry = redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[1])[1]
local dead = {}
for at = 1, entry and #entry[2] or 0, 2 do
  dead[entry[2][at]] = entry[2][at + 1]
end
if not (dead.e and dead.p) or redis.call('EXISTS', KEYS[2]) == 0 then
  return 0
end
for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[2])) do
  if group[2] == ARGV[2] then
    redis.call('XADD', KEYS[2], '*', 'e', dead.e, 'p', dead.p, 'o', ARGV[2])
    return redis.call('XDEL', KEYS[1], ARGV[1])
  end
end
return 0
