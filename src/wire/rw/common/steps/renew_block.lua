-- Step of rw/renew: a marked writer gets tokens, and every marked holder learns how many wait.
local ceiling, wish = token, whole(ARGV[6], 1)
if writer == id then
--@paste common/steps/raise_ceiling.lua
    remember_token(retention)
    ceiling = mark
end
return {1, shape_of(my_grant), token, cut_ms or '', ceiling, queued}
