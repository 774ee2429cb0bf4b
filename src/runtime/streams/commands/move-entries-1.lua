--[[
  Moves pending entries from one consumer to another, or releases them for the next one that claims.

  KEYS[1] stream
  ARGV[1] group
  ARGV[2] consumer that has them
  ARGV[3] consumer that gets them; the same one to release them
  ARGV[4] idle time that they get, milliseconds
  ARGV[5…] entry ids; none: all that the consumer has

  Output: the ids that were moved.
  Guarantee: entries that are acknowledged, or claimed by a third consumer, are left alone. Delivery counts stay as they are, except
  that a released entry starts again: it has ended no process.
]]
local CHUNK = 500
local moved = {}

local function move(ids)
  if #ids == 0 then
    return
  end
  local claim = { 'XCLAIM', KEYS[1], ARGV[1], ARGV[3], 0 }
  for _, id in ipairs(ids) do
    claim[#claim + 1] = id
  end
  local options = { 'IDLE', ARGV[4], 'JUSTID' }
  if tonumber(ARGV[4]) > 0 then
    options = { 'IDLE', ARGV[4], 'RETRYCOUNT', 0, 'JUSTID' }
  end
  for _, option in ipairs(options) do
    claim[#claim + 1] = option
  end
  for _, id in ipairs(redis.call(unpack(claim))) do
    moved[#moved + 1] = id
  end
end

local function pending(from, to, count)
  local ids = {}
  for _, entry in ipairs(redis.call('XPENDING', KEYS[1], ARGV[1], from, to, count, ARGV[2])) do
    ids[#ids + 1] = entry[1]
  end
  return ids
end

for index = 5, #ARGV do
  move(pending(ARGV[index], ARGV[index], 1))
end
local from = #ARGV < 5 and '-'
while from do
  local ids = pending(from, '+', CHUNK)
  move(ids)
  from = #ids == CHUNK and '(' .. ids[CHUNK]
end
return moved
