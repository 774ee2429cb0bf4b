--[[
  Sets a key if it holds exactly the expected text. The caller must find out whether another text is the same value.

  KEYS[1]  the key
  ARGV[1]  the expected text; `null` also matches a missing key
  ARGV[2]  the new text
  ARGV[3]  its time to live in milliseconds; empty: the key keeps the one that it has

  Output: 1 when it was set, else the text that the key holds; nil when there is no key.
  Guarantee: it is atomic, and a key that expires meanwhile is not set.
]]
local text = redis.call('GET', KEYS[1])
if (text or 'null') ~= ARGV[1] then return text end
if ARGV[3] == '' then redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL') else redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
return 1
