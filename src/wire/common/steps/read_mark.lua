-- Step: read the last token.
mark = redis.call('GET', KEYS[4])
if mark and not (string.find(mark, '^[1-9]%d*$') and tonumber(mark) < 9007199254740992) then mark = false end
