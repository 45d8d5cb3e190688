-- Shared by the read-write scripts: a grant as it is written, "<shape> <token>". The shape is r (reads), w (writes) or
-- b (both).

local function shape_of(grant) return grant and string.match(grant, '^([rwb]) [1-9]%d*$') end
local function token_of(grant) return grant and string.match(grant, '^[rwb] ([1-9]%d*)$') end
