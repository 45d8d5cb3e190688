-- Shared by the read-write scripts: the text of a grant, "<shape> <token>". The shape is r (reads), w (writes) or b
-- (both).
--
-- A lost grant is "<shape> <token> lost": the hash lacked its hold for a while, so another program may have held the
-- lock meanwhile. It keeps other clients of ours out until its holder releases it or its lease ends, but no script
-- renews it.

local function shape_of(grant) return grant and string.match(grant, '^([rwb]) [1-9]%d*$') end
local function token_of(grant) return grant and string.match(grant, '^[rwb] ([1-9]%d*)$') end

-- The text of a lost grant without its mark, or nil.
local function lost_grant(grant) return grant and string.match(grant, '^([rwb] [1-9]%d*) lost$') end
