--[[
  Reads a page of the dead letters, newest first, without their payloads: each may have a MiB.

  KEYS[1] stream of the dead letters
  KEYS[2] hash of the letters that were edited
  ARGV[1] where to begin, as XREVRANGE takes it
  ARGV[2] how many at most
  ARGV[3] after so many bytes the page ends
  ARGV[4] prefix of the lists of what waits behind letters

  Output: of each entry the id, and the fields and values except `p`; where it was edited also `edited`, the envelope it has now; where it holds
  up a key also `waiting`, how many events wait. Empty when there are no more.
]]
local page = {}
local bytes = 0
for _, entry in ipairs(redis.call('XREVRANGE', KEYS[1], ARGV[1], '-', 'COUNT', ARGV[2])) do
  local fields, letter = {}, {}
  local function show(name, value)
    fields[#fields + 1] = name
    fields[#fields + 1] = value
    bytes = bytes + #value
  end
  for at = 1, #entry[2], 2 do
    letter[entry[2][at]] = entry[2][at + 1]
    if entry[2][at] ~= 'p' then
      show(entry[2][at], entry[2][at + 1])
    end
  end
  local edited = redis.pcall('HGET', KEYS[2], 'e' .. entry[1])
  if type(edited) == 'string' then
    show('edited', edited)
  end
  if letter.k and letter.event then
    local waiting = redis.pcall('LLEN', ARGV[4] .. letter.event .. ' ' .. letter.k)
    show('waiting', tostring(type(waiting) == 'number' and waiting or 0))
  end
  page[#page + 1] = { entry[1], fields }
  if bytes > tonumber(ARGV[3]) then
    break
  end
end
return page
