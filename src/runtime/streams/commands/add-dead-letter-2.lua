--[[
  Stores a dead letter and acknowledges its entry in the same step.

  KEYS[1] stream of the dead letters
  KEYS[2] stream of the entry; any when there is none
  ARGV[1] how many letters are kept, approximately
  ARGV[2] group
  ARGV[3] id of the entry, '' for none: the letter is stored and nothing is acknowledged
  ARGV[4…] fields and values

  Output: the letter's entry id, '' when the entry was acknowledged before; how many old letters were dropped.
  Guarantee: an entry becomes one letter, also when this is called again because its answer was lost. When the group is gone
  (a wiped server) the letter is stored all the same.
]]
if ARGV[3] ~= '' then
  local pending = redis.pcall('XPENDING', KEYS[2], ARGV[2], ARGV[3], ARGV[3], 1)
  if not pending.err and #pending == 0 then
    return { '', 0 }
  end
end
local before = redis.call('XLEN', KEYS[1])
local id = redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], '*', unpack(ARGV, 4))
if ARGV[3] ~= '' then
  redis.call('XACK', KEYS[2], ARGV[2], ARGV[3])
end
return { id, before + 1 - redis.call('XLEN', KEYS[1]) }
