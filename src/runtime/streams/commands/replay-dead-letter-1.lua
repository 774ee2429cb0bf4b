--[[
  Puts a dead letter back into the stream of its event, for its group alone.

  KEYS[1] stream of the dead letters
  ARGV[1] entry id of the letter
  ARGV[2] prefix of the streams of all events

  Output: 1 when it was moved, 0 when there is no such letter or no such group any more.
  Guarantee: the letter is in one of the two streams, and only once in that of its event, even if two replicas replay it at a time.
]]
local entry = redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[1])[1]
if not entry then
  return 0
end
local letter = {}
for at = 1, #entry[2], 2 do
  letter[entry[2][at]] = entry[2][at + 1]
end
if not (letter.e and letter.p and letter.event and letter.group) then
  return 0
end
local stream = ARGV[2] .. letter.event
for _, group in ipairs(redis.call('EXISTS', stream) == 1 and redis.call('XINFO', 'GROUPS', stream) or {}) do
  if group[2] == letter.group then
    redis.call('XADD', stream, '*', 'e', letter.e, 'p', letter.p, 'o', letter.group)
    redis.call('XDEL', KEYS[1], ARGV[1])
    return 1
  end
end
return 0
