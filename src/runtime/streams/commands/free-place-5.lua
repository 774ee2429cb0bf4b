--[[
  Ends what holds up a place, and lets the next event that waits there go: it is added to the stream again, for its group alone. It goes first
  until this is called for it; without a next one the place is free.

  KEYS[1] stream
  KEYS[2] hash of the places that are held up (see admit-3)
  KEYS[3] list of the events that wait at the place
  KEYS[4] stream of the dead letters
  KEYS[5] stream of the replays: `id` of the dead letter, and what became of it
  ARGV[1] group
  ARGV[2] place, '' for none
  ARGV[3] what holds it up, as the hash has it; what else is there stays
  ARGV[4] id of an entry that is handled, '' for none: it is acknowledged
  ARGV[5] id of a dead letter that is deleted, '' for none
  ARGV[6] id of the dead letter whose replay the entry is, '' for none
  ARGV[7] how many entries KEYS[5] keeps

  Output: 1 when the entry was acknowledged, or the letter was there; else 0.
  Guarantee: while the letter is there, or the entry is not finished, the place stays as it is. A repeated call changes nothing.
]]
local done = 0
if ARGV[4] ~= '' then
  local acknowledged = redis.pcall('XACK', KEYS[1], ARGV[1], ARGV[4])
  done = acknowledged == 1 and 1 or 0
  if ARGV[6] ~= '' and done == 1 then
    redis.pcall('XADD', KEYS[5], 'MAXLEN', ARGV[7], '*', 'id', ARGV[6], 'outcome', 'done')
  end
elseif ARGV[5] ~= '' then
  done = redis.call('XDEL', KEYS[4], ARGV[5])
end
if ARGV[2] == '' or redis.pcall('HGET', KEYS[2], ARGV[2]) ~= ARGV[3] then
  return done
end

local function parts(id)
  local ms, seq = id:match('^(%d+)-(%d+)$')
  return tonumber(ms), tonumber(seq)
end

--- Given to the group, and not pending any more. Without the group nobody finishes it.
local function isFinished(id)
  local ms, seq = parts(id)
  for _, reply in ipairs(redis.call('EXISTS', KEYS[1]) == 1 and redis.call('XINFO', 'GROUPS', KEYS[1]) or {}) do
    local group = {}
    for at = 1, #reply, 2 do
      group[reply[at]] = reply[at + 1]
    end
    if group.name == ARGV[1] then
      local lastMs, lastSeq = parts(group['last-delivered-id'])
      local isAhead = ms > lastMs or (ms == lastMs and seq > lastSeq)
      return not isAhead and #redis.call('XPENDING', KEYS[1], ARGV[1], id, id, 1) == 0
    end
  end
  return true
end

local kind, id = ARGV[3]:sub(1, 1), ARGV[3]:sub(2)
if kind == 'L' and #redis.call('XRANGE', KEYS[4], id, id) > 0 or kind == 'E' and not isFinished(id) then
  return done
end
local packed = redis.pcall('LPOP', KEYS[3])
if type(packed) ~= 'string' then
  redis.call('HDEL', KEYS[2], ARGV[2])
  return done
end
local add = { 'XADD', KEYS[1], '*' }
for _, part in ipairs(cmsgpack.unpack(packed)) do
  add[#add + 1] = part
end
add[#add + 1] = 'o'
add[#add + 1] = ARGV[1]
redis.call('HSET', KEYS[2], ARGV[2], 'E' .. redis.call(unpack(add)))
return done
