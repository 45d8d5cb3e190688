-- Shared by the lock scripts: reading texts that somebody else may have written.

-- The text as a whole number from `least` on, or nil. Lua's numbers are doubles: from 2^53 on, one more is the same.
local function whole(text, least)
    local number = text and string.find(text, '^%d+$') and tonumber(text)
    if number and number >= least and number < 9007199254740992 then return number end
    return nil
end
