-- Shared by the lock scripts: numbers in texts that others may have written.

-- The text as a whole number, `least` or more, or nil. Lua's numbers are doubles: from 2^53 on they have gaps.
local function whole(text, least)
    local number = text and string.find(text, '^%d+$') and tonumber(text)
    if number and number >= least and number < 9007199254740992 then return number end
    return nil
end
