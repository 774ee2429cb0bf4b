--[[
  Marks groups as having a living subscriber.

  KEYS[1] hash: stream, blank, group → time of its last mark by a replica
  ARGV[1…] fields

  Guarantee: the time is the server's.
]]
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
for _, field in ipairs(ARGV) do
  redis.call('HSET', KEYS[1], field, now)
end
