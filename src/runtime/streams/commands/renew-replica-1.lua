--[[
  Keeps a replica's name, or takes it again when it has lapsed.

  KEYS[1] key of the replica
  ARGV[1] token of its holder
  ARGV[2] milliseconds for which it is kept

  Output: '' when it is the holder's, else the token of its holder.
  Guarantee: a name that another process has taken stays its own.
]]
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
  return holder
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return ''
