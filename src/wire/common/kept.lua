-- Shared by the scripts that acquire: kept locks, whose holders have marked ids (wire/hold_id.hpp).
--
-- The client of a marked hold goes on holding after use, and gives the lock back when somebody else wants it. So a
-- script tells it `wanted <hold id>` when somebody has to wait because of it, and again at each poll of the first
-- waiter: a lost message costs one poll. And whatever makes a marked id the holder says how many wait.
--
-- A marked exclusive hold has a block of tokens, one for each local grant. The mark (token.lua) is then the last token
-- of the block, the ceiling: so a marked grant is meant by any token that is not above the mark.
--
-- Most locks are not kept, and a function costs time even if nobody calls it. So what only kept locks need are steps.
--
-- The script has set: id. It has included queue.lua and hold_id.lua.

-- {1, ...}: the caller holds it by that token. `exclusive`: it may use all tokens up to the mark.
local function held_answer(token, exclusive, cut)
    local clock = clock_told()
    if not is_marked(id) then return {1, token, clock or cut and '', cut} end
    local ceiling = exclusive and mark and tonumber(mark) > tonumber(token) and mark or token
    return {1, token, clock or '', cut or '', ceiling, queued}
end
