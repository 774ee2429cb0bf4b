--[[
  Sets a key that holds the very text that is expected. Whether another text is the same value is for the caller to find out.

  KEYS[1]  the key
  ARGV[1]  the expected text; `null` stands for no key too
  ARGV[2]  the new text

  Output: 1 when it was set, else the text that the key holds, nil for no key.
  Guarantee: nothing runs in between, and the key keeps its time to live.
]]
local text = redis.call('GET', KEYS[1])
if (text or 'null') ~= ARGV[1] then return text end
redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL')
return 1
