--[[
  Puts a dead letter back into the stream of its event, for its group alone. Where the letter holds up its key, the entry does from now on.

  KEYS[1] stream of the dead letters
  KEYS[2] stream of its event
  KEYS[3] hash of the places that are held up (see admit-3)
  KEYS[4] hash of the letters that were edited: `e` and `p` with the letter's id → envelope and payload
  KEYS[5] stream of the replays
  ARGV[1] entry id of the letter
  ARGV[2] its group
  ARGV[3] how many entries KEYS[5] keeps

  Output: 1 when it was moved, 0 when there is no such letter or no such group any more.
  Guarantee: the letter is in one of the two streams, and only once in that of its event, even if two replicas replay it at a time.
]]
local entry = redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[1])[1]
if not entry then
  return 0
end
local letter, shown = {}, { 'XADD', KEYS[5], 'MAXLEN', ARGV[3], '*', 'id', ARGV[1] }
for at = 1, #entry[2], 2 do
  local name, value = entry[2][at], entry[2][at + 1]
  letter[name] = value
  if name ~= 'p' and name ~= 't' then
    shown[#shown + 1] = name
    shown[#shown + 1] = value
  end
end
if not (letter.e and letter.p and letter.event and letter.group) then
  return 0
end
local edited = redis.pcall('HGET', KEYS[4], 'e' .. ARGV[1])
if type(edited) == 'string' then
  letter.e, letter.p = edited, redis.call('HGET', KEYS[4], 'p' .. ARGV[1])
  shown[#shown + 1] = 'edited'
  shown[#shown + 1] = edited
end
for _, group in ipairs(redis.call('EXISTS', KEYS[2]) == 1 and redis.call('XINFO', 'GROUPS', KEYS[2]) or {}) do
  if group[2] == ARGV[2] then
    local id = redis.call('XADD', KEYS[2], '*', 'e', letter.e, 'p', letter.p, 'o', letter.group, 'h', ARGV[1])
    if letter.k and redis.pcall('HGET', KEYS[3], letter.k) == 'L' .. ARGV[1] then
      redis.call('HSET', KEYS[3], letter.k, 'E' .. id)
    end
    redis.call('XDEL', KEYS[1], ARGV[1])
    redis.pcall('HDEL', KEYS[4], 'e' .. ARGV[1], 'p' .. ARGV[1])
    redis.pcall(unpack(shown))
    return 1
  end
end
return 0
