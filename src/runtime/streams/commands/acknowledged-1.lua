--[[
  Says which entries a group has finished: delivered to it and not pending any more.

  KEYS[1] stream
  ARGV[1] group
  ARGV[2…] entry ids

  Output: 1 or 0 for each id, or the error NOGROUP.
  Guarantee: all answers are of one moment. An entry that was cut before the group had it counts as finished once the group
  has been given a later one: nothing will ever finish it.
]]
local function parts(id)
  local ms, seq = id:match('^(%d+)-(%d+)$')
  return tonumber(ms), tonumber(seq)
end

local lastMs, lastSeq
for _, group in ipairs(redis.call('EXISTS', KEYS[1]) == 1 and redis.call('XINFO', 'GROUPS', KEYS[1]) or {}) do
  local info = {}
  for at = 1, #group, 2 do
    info[group[at]] = group[at + 1]
  end
  if info.name == ARGV[1] then
    lastMs, lastSeq = parts(info['last-delivered-id'])
  end
end
if not lastMs then
  return redis.error_reply('NOGROUP No such key or consumer group')
end

local answers = {}
for index = 2, #ARGV do
  local id = ARGV[index]
  local ms, seq = parts(id)
  local isAhead = ms > lastMs or (ms == lastMs and seq > lastSeq)
  local isPending = not isAhead and #redis.call('XPENDING', KEYS[1], ARGV[1], id, id, 1) > 0
  answers[#answers + 1] = (isAhead or isPending) and 0 or 1
end
return answers
