-- Shared by the read-write scripts: a grant as it is written, "<shape> <token>", and the ids of those who have one. The
-- shape is r (reads), w (writes) or b (both). A lost grant is written "<shape> <token> lost": its hold was missing in
-- the hash for a while, so another program may have come and gone. It keeps others of ours out until its holder releases
-- it or its lease ends, but it is not a grant any more: no script renews it.

local function shape_of(grant) return grant and string.match(grant, '^([rwb]) [1-9]%d*$') end
local function token_of(grant) return grant and string.match(grant, '^[rwb] ([1-9]%d*)$') end

-- The text of a lost grant without its mark, or nil.
local function lost_grant(grant) return grant and string.match(grant, '^([rwb] [1-9]%d*) lost$') end

-- By its form, which is that of our hold ids: hf_<client, 16 characters>.<number>.<22 random characters>.
local function is_ours(who)
    local client, random = string.match(who, '^hf_([%w_%-]+)%.%d+%.([%w_%-]+)$')
    return client and #client == 16 and #random == 22
end
