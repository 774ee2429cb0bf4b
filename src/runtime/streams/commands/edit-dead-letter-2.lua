--[[
  Gives a dead letter another envelope and payload. The letter itself stays as it is.

  KEYS[1] stream of the dead letters
  KEYS[2] hash of the letters that were edited
  ARGV[1] entry id of the letter
  ARGV[2] envelope
  ARGV[3] payload

  Output: 1, or 0 when there is no such letter.
  Guarantee: both texts are kept, or neither, and never for a letter that is gone.
]]
if #redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[1]) == 0 then
  return 0
end
redis.call('HSET', KEYS[2], 'e' .. ARGV[1], ARGV[2], 'p' .. ARGV[1], ARGV[3])
return 1
