-- Step: the next tokens for a marked id; see common/kept.lua. The block begins up to 100 us ago, so that there are some
-- tokens at once; and at the server's time if no token is known, because nobody knows then which were used. Its last
-- one becomes the mark.
local last = math.max(mark or 0, floor)
local token = math.max(last + 1, mark and now_us - 100 or now_us)
if proposal and proposal > last and math.abs(proposal - now_us) <= 1000000 then token = proposal end
mark = string.format('%.0f', math.max(token, now_us))
return string.format('%.0f', token)
