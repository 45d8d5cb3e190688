-- Shared by the mutex scripts that name a grant by its token.
--@include common/hold_id.lua

-- True if that token names the present grant of `who`. The mark of a marked one is the last token of its block.
local function is_meant(who, token, mark)
    return token == mark or is_marked(who) and (tonumber(token) or 2 ^ 53) <= (tonumber(mark) or 0)
end
