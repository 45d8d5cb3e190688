-- Shared by the read-write scripts: a grant as it is written, "<shape> <token>". The shape is r (reads), w (writes) or b (both). A lost grant is written "<shape> <token> lost": its hold was missing in
-- the hash for a while, so another program may have come and gone. It keeps others of ours out until its holder releases
-- it or its lease ends, but it is not a grant any more: no script renews it.

local function shape_of(grant) return grant and string.match(grant, '^([rwb]) [1-9]%d*$') end
local function token_of(grant) return grant and string.match(grant, '^[rwb] ([1-9]%d*)$') end

-- The text of a lost grant without its mark, or nil.
local function lost_grant(grant) return grant and string.match(grant, '^([rwb] [1-9]%d*) lost$') end
