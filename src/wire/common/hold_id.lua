-- Shared by the scripts that meet holds of other programs: the form of our hold ids.

-- hf_<client, 16 characters>.<number>.<22 random characters>
local function is_ours(who)
    local client, random = string.match(who, '^hf_([%w_%-]+)%.%d+%.([%w_%-]+)$')
    return client and #client == 16 and #random == 22
end
