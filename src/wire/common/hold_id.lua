-- Shared by the scripts that meet holds of other clients: the form of our hold ids.

-- hf_<client, 16 characters>.<number>.<22 random characters>
local function is_ours(who)
    local client, random = string.match(who, '^hf_([%w_%-]+)%.%d+%.([%w_%-]+)$')
    return client and #client == 16 and #random == 22
end

-- A leading zero of the number is the mark of a hold that can be asked back. The fast paths look for it by the byte
-- alone, and leave marked ids to the general path.
local function is_marked(who) return string.byte(who, 21) == 48 and string.find(who, '^%.0%d+%.', 20) ~= nil end
